-- Version 2: the history of items, when they changed, where pages are archived, near duplicates.

-- Items get a hash of their content. `data` has to stay the last column, hence a new table.
DROP INDEX items_by_page;

DROP INDEX items_by_crawl;

ALTER TABLE items RENAME TO items_1;

CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    crawl INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    scraped_at REAL NOT NULL,
    first_at REAL NOT NULL,    -- of the reading that was stored first
    changed_at REAL NOT NULL,  -- of the last reading with other content than the one before
    content INTEGER NOT NULL,  -- 0 for rows of version 1: their next reading counts as a change
    url TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (crawl, kind, key)
);

INSERT INTO items
SELECT id, crawl, kind, key, fingerprint, scraped_at, scraped_at, scraped_at, 0, url, data
FROM items_1;

DROP TABLE items_1;

-- For items_of.
CREATE INDEX items_by_page ON items (crawl, fingerprint);

-- For streaming one crawl in the order of ids without reading the others'.
CREATE INDEX items_by_crawl ON items (crawl);

-- The history of items. The newest reading with a change is both here and in `items`.
CREATE TABLE observations (
    item INTEGER NOT NULL,
    scraped_at REAL NOT NULL,
    fingerprint INTEGER NOT NULL,
    url TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (item, scraped_at)
) WITHOUT ROWID;

ALTER TABLE pages ADD COLUMN digest BLOB NOT NULL DEFAULT x'';

ALTER TABLE pages ADD COLUMN simhash INTEGER;

ALTER TABLE pages ADD COLUMN archived TEXT NOT NULL DEFAULT '';

-- Pages that are nearly the same as another one.
CREATE TABLE near_pages (
    crawl INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    like_fingerprint INTEGER NOT NULL,
    distance INTEGER NOT NULL,
    PRIMARY KEY (crawl, fingerprint)
) WITHOUT ROWID;

ALTER TABLE result_crawls ADD COLUMN targets TEXT NOT NULL DEFAULT '[]';

ALTER TABLE result_crawls ADD COLUMN archive TEXT NOT NULL DEFAULT '';
