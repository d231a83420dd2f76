-- Statements of `shoal merge`, for a private temporary database. It sorts more items than fit into
-- memory, and needs no durable transactions.

-- create: the items to be merged
-- `natural` is the natural key; `rank` is the position of the item's crawl in the list of crawls.
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

-- newest: all items, grouped by natural key, newest first
SELECT * FROM sources ORDER BY kind, natural, scraped_at DESC, rank, key

-- first_non_empty: all items, grouped by natural key, in the order of the crawls
SELECT * FROM sources ORDER BY kind, natural, rank, scraped_at DESC, key
