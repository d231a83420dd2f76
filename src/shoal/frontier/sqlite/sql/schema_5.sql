-- Version 5: workers share a host's room, see core/sharing.py.
--
-- hosts.shared   its unfinished shared leases, which `leased` counts as well
-- hosts.sharers  the number of its rows in `shares`; while it is 0, none are read
-- tasks.shared   whether its lease is shared
-- shares         how many requests a worker may have in flight at a host; void from `until` on

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
