-- Version 5: workers share a host's room, see core/sharing.py.
--
-- hosts.shared   its shared leases that are not finished; they are among those that `leased` counts
-- hosts.sharers  its rows in `shares`: none is looked for where there is none
-- tasks.shared   whether its lease is shared
-- shares         so many requests a worker may have in flight at a host; void from `until` on

ALTER TABLE hosts ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;

ALTER TABLE hosts ADD COLUMN sharers INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tasks ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;

CREATE TABLE shares (
    host_id INTEGER NOT NULL,
    worker TEXT NOT NULL,
    share INTEGER NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (host_id, worker)
) WITHOUT ROWID;
