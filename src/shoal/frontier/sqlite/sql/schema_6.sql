-- Version 6: exits, see core/exits.py. `body` has the whole value; columns have what SQL needs.
--
-- lanes       the tasks of a host that leave through the exits of one pool. Their `host_id` is not
--             that of the host, but the negative id of their lane. `ready_at` is `next_at` while
--             any of them wait, otherwise NULL
-- passages    for a task of a lane: the exit lent with its lease (NULL while it has none), and the
--             blocks it met before. Deleted when the task has ended
-- pools       their rules, what they have cost, and how many of their exits are listed
-- exits       `free_at` is when the exit's own clock allows its use; NULL if time alone does not
-- pairs       an exit at a host, by the host's name, as all crawls share them. `free_at` as above,
--             but infinity instead of NULL; from `void_at` on it carries no information
-- exit_clock  a clock that never goes back (see clock.py), and when pairs were last swept

CREATE TABLE lanes (
    id INTEGER PRIMARY KEY,
    crawl_id INTEGER NOT NULL,
    host_id INTEGER NOT NULL,
    pool TEXT NOT NULL,
    waiting INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL DEFAULT 0,
    ready_at REAL,
    body TEXT NOT NULL DEFAULT '{}',
    UNIQUE (host_id, pool)
);

CREATE INDEX lanes_ready ON lanes (crawl_id, pool, ready_at) WHERE ready_at IS NOT NULL;

CREATE TABLE passages (
    task_id INTEGER PRIMARY KEY,
    exit TEXT,
    session INTEGER NOT NULL,
    pool TEXT NOT NULL,
    leased_at REAL NOT NULL,              -- by the clock of the exits
    blocks INTEGER NOT NULL,
    tried TEXT NOT NULL
);

CREATE TABLE pools (
    name TEXT PRIMARY KEY,
    rules TEXT NOT NULL,
    spent TEXT NOT NULL,
    listed INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE exits (
    id TEXT PRIMARY KEY,
    pool TEXT NOT NULL,
    is_listed INTEGER NOT NULL,
    session INTEGER NOT NULL,
    used_at REAL NOT NULL,
    free_at REAL,
    out_until REAL NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX exits_rested ON exits (pool, used_at, id, free_at) WHERE free_at IS NOT NULL;

CREATE INDEX exits_free ON exits (pool, free_at) WHERE free_at IS NOT NULL;

CREATE TABLE pairs (
    host TEXT NOT NULL,
    exit TEXT NOT NULL,
    session INTEGER NOT NULL,
    since REAL NOT NULL,
    free_at REAL NOT NULL,
    cool_until REAL NOT NULL,
    void_at REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (host, exit)
) WITHOUT ROWID;

CREATE INDEX pairs_sticking ON pairs (host, since) WHERE since > 0;

CREATE INDEX pairs_cooling ON pairs (cool_until, exit) WHERE cool_until > 0;

CREATE INDEX pairs_void ON pairs (void_at);

CREATE TABLE exit_clock (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    latest REAL NOT NULL,
    ahead REAL NOT NULL,
    swept_at REAL NOT NULL
);

INSERT INTO exit_clock VALUES (1, 0, 0, 0);
