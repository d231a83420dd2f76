-- Version 4: a clock that never goes back, see clock.py.
--
-- crawls.latest  the latest moment that the crawl has seen
-- crawls.ahead   how far its clock is ahead of the machine's

ALTER TABLE crawls ADD COLUMN latest REAL NOT NULL DEFAULT 0;

ALTER TABLE crawls ADD COLUMN ahead REAL NOT NULL DEFAULT 0;
