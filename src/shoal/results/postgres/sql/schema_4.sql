-- Version 4: which crawl another one follows on.

ALTER TABLE crawls ADD COLUMN previous text COLLATE "C" NOT NULL DEFAULT '';
