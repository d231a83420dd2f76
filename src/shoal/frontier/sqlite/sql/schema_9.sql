-- Version 9: failures by kind, see core/failures.py.
--
-- failures    how many tries have failed so, ever: of each host, and with host 0 of the whole crawl
-- tasks.kind  of a dead task, why it is dead. NULL: that was not noted
-- tasks.since when it was handed out, by the crawl's clock; or when its lease ended, by the machine's:
--             so of a dead task, when it died. Of one that an earlier version left, when it was last tried
--
-- Dead tasks are listed and walked over newest first.

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
