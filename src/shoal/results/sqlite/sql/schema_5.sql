-- Version 5: the exit that a page was asked for by, and what kind of block the answer was.

ALTER TABLE pages ADD COLUMN exit TEXT NOT NULL DEFAULT '';

ALTER TABLE pages ADD COLUMN block TEXT NOT NULL DEFAULT '';
