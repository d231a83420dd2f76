-- Version 4: a clock that never goes back (see clock.py), and an index of what workers hold.
--
-- crawls.latest  the latest time that the crawl has seen
-- crawls.ahead   how far its clock is ahead of the machine's
-- tasks_held     for the check whether a worker holds any task, made whenever there are suspects

ALTER TABLE crawls ADD COLUMN latest REAL NOT NULL DEFAULT 0;

ALTER TABLE crawls ADD COLUMN ahead REAL NOT NULL DEFAULT 0;

CREATE INDEX tasks_held ON tasks (crawl_id, worker) WHERE state = 2;
