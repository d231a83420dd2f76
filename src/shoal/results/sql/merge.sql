-- Statements of `shoal merge`, for a private temporary file that nobody else ever opens. It is there
-- to sort more items than fit into memory; it needs no transaction that would survive a crash.

-- create: the items to be merged
-- `natural` is the natural key; `rank` is the place of the item's crawl among those that were named.
CREATE TABLE sources (
    kind TEXT NOT NULL,
    natural TEXT NOT NULL,
    rank INTEGER NOT NULL,
    crawl TEXT NOT NULL,
    key TEXT NOT NULL,
    url TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    scraped_at REAL NOT NULL,
    data BLOB NOT NULL
)

-- add: one item
INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- newest: items with the same natural key together, the newest first
SELECT * FROM sources ORDER BY kind, natural, scraped_at DESC, rank, key

-- first_non_empty: items with the same natural key together, in the order of the crawls
SELECT * FROM sources ORDER BY kind, natural, rank, scraped_at DESC, key
