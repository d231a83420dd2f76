-- Version 1: items, their history, the page log, and rejected items.
--
-- Fingerprints and content hashes are 64 bits, stored as signed numbers. Names and keys are compared
-- byte by byte (COLLATE "C"), as Shoal itself does; it is also the fastest way.

-- One row per crawl that has run here.
CREATE TABLE crawls (
    name text COLLATE "C" PRIMARY KEY,
    frontier text NOT NULL  -- the address of its frontier, never with a password
);

-- Ids follow the order in which items are first stored. Exports use that order.
CREATE SEQUENCE items_id;

-- The current state of every item.
CREATE TABLE items (
    crawl text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    scraped_at timestamptz NOT NULL,
    first_at timestamptz NOT NULL,    -- of the reading that was stored first
    changed_at timestamptz NOT NULL,  -- of the last reading with other content than the one before
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
-- A hash index, as a URL may be longer than a B-tree accepts.
CREATE INDEX items_by_url ON items USING hash (url);

-- The history of items. The newest reading with a change is both here and in `items`.
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

-- Takes the rows of months without a table of their own, so that no row is ever refused.
CREATE TABLE observations_default PARTITION OF observations DEFAULT;

-- One row per try at a URL. The primary key identifies the try: saving a batch again, because the
-- first save may have failed, adds nothing.
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
    digest bytea NOT NULL,  -- of kind, reason and data: equal ones are stored once
    kind text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (crawl, fingerprint, scraped_at, digest)
);

CREATE INDEX rejected_by_id ON rejected (crawl, id);
