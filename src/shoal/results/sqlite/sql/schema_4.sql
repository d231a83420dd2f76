-- Version 4: the previous crawl that a crawl builds on.

ALTER TABLE result_crawls ADD COLUMN previous TEXT NOT NULL DEFAULT '';
