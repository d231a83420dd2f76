-- Version 4: the previous crawl that a crawl builds on.

ALTER TABLE crawls ADD COLUMN previous text COLLATE "C" NOT NULL DEFAULT '';
