-- Version 4: which crawl another one follows on.

ALTER TABLE result_crawls ADD COLUMN previous TEXT NOT NULL DEFAULT '';
