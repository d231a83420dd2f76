-- Version 1: items, page log and rejected items of every crawl in this file.
-- Files from before schema versions were recorded have these tables already.
--
-- The frontier may use the same file; these tables have nothing in common with its tables.
-- Fingerprints are 8 bytes, stored as signed integers. Times are seconds since 1970, UTC.

-- Crawls get short numbers, so that rows do not repeat their names.
CREATE TABLE IF NOT EXISTS result_crawls (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    frontier TEXT NOT NULL DEFAULT ''  -- the address of its frontier in the last run
);

-- One row per (crawl, kind, key). An upsert keeps the id, so ids follow the order of first storing.
-- `data` is JSON text, for json_extract(). It comes last, so that reading the rest skips it.
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY,
    crawl INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    scraped_at REAL NOT NULL,
    url TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (crawl, kind, key)
);

-- For items_of.
CREATE INDEX IF NOT EXISTS items_by_page ON items (crawl, fingerprint);

-- For streaming one crawl in the order of ids without reading the others'.
CREATE INDEX IF NOT EXISTS items_by_crawl ON items (crawl);

-- One row per try at a URL. The unique columns identify the try: saving a batch again, because the
-- first save may have failed, adds nothing.
CREATE TABLE IF NOT EXISTS pages (
    id INTEGER PRIMARY KEY,
    crawl INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    started_at REAL NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    duration_s REAL NOT NULL,
    verdict TEXT NOT NULL,
    status INTEGER,
    body_bytes INTEGER NOT NULL,
    items INTEGER NOT NULL,
    links INTEGER NOT NULL,
    url TEXT NOT NULL,
    parent TEXT,
    error TEXT NOT NULL,
    UNIQUE (crawl, fingerprint, started_at, attempt, worker)
);

-- One row per rejected item. The unique columns identify it, with `digest` in place of kind, reason
-- and data: saving it again adds nothing.
CREATE TABLE IF NOT EXISTS rejected (
    id INTEGER PRIMARY KEY,
    crawl INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    scraped_at REAL NOT NULL,
    digest BLOB NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    url TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (crawl, fingerprint, scraped_at, digest)
);
