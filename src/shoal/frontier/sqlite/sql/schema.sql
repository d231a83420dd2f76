-- The frontier's tables. Created once, by the process that opens the file first.
--
-- crawls  one row each, with every counter, so that statistics are one row to read. The columns of
--         the counters are added when a file is opened: see statements.py
-- hosts   the unit of scheduling; hosts_ready is the heap of hosts by the time they may be hit
-- tasks   one row for every URL ever accepted: the queue, the leases and the seen set in one.
--         state: 0 waiting, 1 delayed, 2 leased, 3 done, 4 dead, 5 dropped (see statements.py)
-- workers the last sign of life of each worker
-- robots  the robots.txt of each host, apart from hosts because it is long and rarely read

CREATE TABLE IF NOT EXISTS crawls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: a new id tells workers of a fresh start
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    rules TEXT NOT NULL,
    sealed INTEGER NOT NULL DEFAULT 0,  -- 1 once all seeds are in
    created_at REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    places INTEGER NOT NULL DEFAULT 0,  -- the last place given to a task
    -- Two samples of `done` + `dead`, at least ten seconds apart: enough for the recent rate.
    sample_at REAL NOT NULL DEFAULT 0,
    sample_done INTEGER NOT NULL DEFAULT 0,
    earlier_at REAL NOT NULL DEFAULT 0,
    earlier_done INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS hosts (
    id INTEGER PRIMARY KEY,
    crawl_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    waiting INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL DEFAULT 0,    -- the earliest moment of the next request
    penalty_s REAL NOT NULL DEFAULT 0,
    pushed_at REAL NOT NULL DEFAULT 0,
    crawl_delay_s REAL NOT NULL DEFAULT 0,
    robots_at REAL,
    robots_until REAL NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,  -- in a row
    broken_at REAL NOT NULL DEFAULT 0,  -- when a failure was last counted during probing
    latency_s REAL NOT NULL DEFAULT 0,
    ready_at REAL,                      -- next_at while it has work and room, else NULL
    UNIQUE (crawl_id, host)
);

CREATE INDEX IF NOT EXISTS hosts_ready ON hosts (crawl_id, ready_at) WHERE ready_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY,
    crawl_id INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    host_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    place INTEGER NOT NULL,               -- its turn within its priority; 0 is the front
    state INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,  -- tries that failed
    losses INTEGER NOT NULL DEFAULT 0,    -- workers that died with it
    due REAL,                             -- delayed: ready again; leased: the lease expires
    token TEXT,
    worker TEXT,
    leased_at REAL,
    reserved REAL,                        -- the next turn of its host after its lease
    reason TEXT NOT NULL DEFAULT '',
    detail TEXT NOT NULL DEFAULT '',
    task BLOB NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS tasks_seen ON tasks (crawl_id, fingerprint);

CREATE INDEX IF NOT EXISTS tasks_ready ON tasks (host_id, priority DESC, place, id)
WHERE state = 0;

CREATE INDEX IF NOT EXISTS tasks_suspect ON tasks (crawl_id, id) WHERE state = 0 AND losses >= 2;

CREATE INDEX IF NOT EXISTS tasks_due ON tasks (crawl_id, due) WHERE due IS NOT NULL;

CREATE INDEX IF NOT EXISTS tasks_dead ON tasks (crawl_id, id) WHERE state = 4;

CREATE TABLE IF NOT EXISTS robots (
    host_id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS workers (
    crawl_id INTEGER NOT NULL,
    worker TEXT NOT NULL,
    seen_at REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (crawl_id, worker)
) WITHOUT ROWID;
