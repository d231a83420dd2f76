-- Version 5: the exit that a page was asked for by, and what kind of block the answer was.

ALTER TABLE pages ADD COLUMN exit text NOT NULL DEFAULT '';
ALTER TABLE pages ADD COLUMN block text NOT NULL DEFAULT '';
