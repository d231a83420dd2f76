-- Version 9: failures by kind, see core/failures.py.
--
-- failures    the number of failed tries of each kind so far, by host; host 0 is the whole crawl
-- tasks.kind  for dead tasks: the kind of failure. NULL if it was not stored
-- tasks.since when the task was leased, by the crawl's clock; after that, when its lease ended, by
--             the machine's. So for a dead task it is when it died, or, if an earlier version left
--             it, when it was last tried
--
-- tasks_dead lists dead tasks in the order of their deaths.

CREATE TABLE failures (
    crawl_id INTEGER NOT NULL,
    host_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tries INTEGER NOT NULL,
    PRIMARY KEY (crawl_id, host_id, kind)
) WITHOUT ROWID;

ALTER TABLE tasks ADD COLUMN kind TEXT;

ALTER TABLE tasks RENAME COLUMN leased_at TO since;

UPDATE tasks SET since = 0 WHERE state = 4 AND since IS NULL;

DROP INDEX tasks_dead;

CREATE INDEX tasks_dead ON tasks (crawl_id, since, fingerprint) WHERE state = 4;
