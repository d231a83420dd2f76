-- Version 5: the exit by which a page was requested, and the kind of block that the answer was.

ALTER TABLE pages ADD COLUMN exit TEXT NOT NULL DEFAULT '';

ALTER TABLE pages ADD COLUMN block TEXT NOT NULL DEFAULT '';
