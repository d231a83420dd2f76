-- Version 5: the exit by which a page was requested, and the kind of block that the answer was.

ALTER TABLE pages ADD COLUMN exit text NOT NULL DEFAULT '';
ALTER TABLE pages ADD COLUMN block text NOT NULL DEFAULT '';
