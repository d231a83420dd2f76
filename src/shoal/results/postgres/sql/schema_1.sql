-- Version 1: the items, what they said before, the page log, and what was put aside.
--
-- Fingerprints and content hashes are 64 bits, kept as signed numbers. Names and keys are compared
-- byte by byte (COLLATE "C"): that is what makes them equal for Shoal, and it is the quickest.

-- One row per crawl that has run here.
CREATE TABLE crawls (
    name text COLLATE "C" PRIMARY KEY,
    frontier text NOT NULL  -- where its queue is; never with a password
);

-- Ids are given out in the order in which items are first stored: exports follow them.
CREATE SEQUENCE items_id;

-- The current state of every item.
CREATE TABLE items (
    crawl text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    scraped_at timestamptz NOT NULL,
    first_at timestamptz NOT NULL,    -- of the reading that was stored first
    changed_at timestamptz NOT NULL,  -- of the reading that said something else than the one before
    content bigint NOT NULL,          -- a hash of the fields
    fingerprint bigint NOT NULL,      -- of the task whose page it was read from
    url text NOT NULL,
    host text COLLATE "C" NOT NULL,   -- of the URL, with its port if there is one
    data jsonb NOT NULL,
    PRIMARY KEY (crawl, kind, key)
);

CREATE INDEX items_by_id ON items (crawl, id);
CREATE INDEX items_by_page ON items (crawl, fingerprint);
CREATE INDEX items_by_host ON items (crawl, host);
CREATE INDEX items_by_time ON items (crawl, scraped_at);
-- A hash index: a URL may be longer than a B-tree takes.
CREATE INDEX items_by_url ON items USING hash (url);

-- What items said, and when. The newest reading that said something new is here and in `items`.
CREATE TABLE observations (
    crawl text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    scraped_at timestamptz NOT NULL,
    content bigint NOT NULL,
    fingerprint bigint NOT NULL,
    url text NOT NULL,
    data jsonb NOT NULL,
    PRIMARY KEY (crawl, kind, key, scraped_at)
) PARTITION BY RANGE (scraped_at);

-- Takes what no month's table takes, so that nothing is ever refused.
CREATE TABLE observations_default PARTITION OF observations DEFAULT;

-- One row per try at a URL. The primary key is what makes a try that try: a batch that is saved
-- again, because nobody knew whether the first save had worked, adds nothing.
CREATE TABLE pages (
    crawl text COLLATE "C" NOT NULL,
    fingerprint bigint NOT NULL,
    started_at timestamptz NOT NULL,
    attempt integer NOT NULL,
    worker text COLLATE "C" NOT NULL,
    duration_s double precision NOT NULL,
    verdict text NOT NULL,
    status integer,
    body_bytes bigint NOT NULL,
    items integer NOT NULL,
    links integer NOT NULL,
    url text NOT NULL,
    parent text,
    error text NOT NULL,
    digest bytea NOT NULL,  -- of the body
    PRIMARY KEY (crawl, fingerprint, started_at, attempt, worker)
) PARTITION BY RANGE (started_at);

CREATE TABLE pages_default PARTITION OF pages DEFAULT;

-- Items that did not pass validation, or that the database refused.
CREATE TABLE rejected (
    id bigint GENERATED ALWAYS AS IDENTITY,
    crawl text COLLATE "C" NOT NULL,
    fingerprint bigint NOT NULL,
    scraped_at timestamptz NOT NULL,
    digest bytea NOT NULL,  -- of kind, reason and data: the same one is kept once
    kind text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (crawl, fingerprint, scraped_at, digest)
);

CREATE INDEX rejected_by_id ON rejected (crawl, id);
