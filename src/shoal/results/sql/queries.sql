-- Statements of the SQLite results store. Writes take their values in the order of the columns;
-- reads take the crawl's name as :crawl. The save_ and forget_ statements run between
-- BEGIN IMMEDIATE and COMMIT, so a batch is stored, and a crawl forgotten, as a whole or not at all.

-- add_crawl: give a crawl its number, unless it has one
INSERT INTO result_crawls (name) VALUES (:crawl) ON CONFLICT (name) DO NOTHING

-- crawl_id: the number of a crawl
SELECT id FROM result_crawls WHERE name = :crawl

-- save_item: insert an item, or update it unless what is stored is newer
-- Of two scrapes at the same moment the later arrival wins. Data comes as UTF-8 bytes.
INSERT INTO items (crawl, kind, key, fingerprint, scraped_at, url, data)
VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT))
ON CONFLICT (crawl, kind, key) DO UPDATE SET
    fingerprint = excluded.fingerprint,
    scraped_at = excluded.scraped_at,
    url = excluded.url,
    data = excluded.data
WHERE excluded.scraped_at >= items.scraped_at

-- save_page: log one try, once
INSERT INTO pages (
    crawl, fingerprint, started_at, attempt, worker, duration_s, verdict, status,
    body_bytes, items, links, url, parent, error
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (crawl, fingerprint, started_at, attempt, worker) DO NOTHING

-- save_rejected: keep a rejected item, once
INSERT INTO rejected (crawl, fingerprint, scraped_at, digest, kind, reason, url, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (crawl, fingerprint, scraped_at, digest) DO NOTHING

-- items_after: one page of the stream of items, of all kinds or of :kind
-- Returns the id to go on from, then the item; data, as bytes, comes last.
SELECT id, kind, key, fingerprint, scraped_at, url, CAST(data AS BLOB)
FROM items
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND id > :after
    AND (:kind IS NULL OR kind = :kind)
ORDER BY id
LIMIT :limit

-- items_of: the items last read from one page
SELECT id, kind, key, fingerprint, scraped_at, url, CAST(data AS BLOB)
FROM items
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint
ORDER BY id

-- count_items: how many items there are of each kind
SELECT kind, count(*)
FROM items
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
GROUP BY kind
ORDER BY kind

-- pages_of: every try at one URL, oldest first
SELECT
    fingerprint, started_at, attempt, worker, duration_s, verdict, status,
    body_bytes, items, links, url, parent, error
FROM pages
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint
ORDER BY started_at, id

-- rejected_of: the rejected items of one URL
SELECT id, fingerprint, scraped_at, kind, reason, url, data
FROM rejected
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint
ORDER BY id

-- rejected_after: one page of the stream of rejected items
-- Returns the id to go on from, then the rejected item; data comes last.
SELECT id, fingerprint, scraped_at, kind, reason, url, data
FROM rejected
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND id > :after
ORDER BY id
LIMIT :limit

-- frontier_of: where the crawl's queue was
SELECT frontier FROM result_crawls WHERE name = :crawl

-- note_frontier: where the crawl's queue is
INSERT INTO result_crawls (name, frontier) VALUES (:crawl, :address)
ON CONFLICT (name) DO UPDATE SET frontier = excluded.frontier

-- forget_items: delete a crawl's items
DELETE FROM items WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_pages: delete a crawl's page log
DELETE FROM pages WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_rejected: delete a crawl's rejected items
DELETE FROM rejected WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_crawl: delete a crawl's number, after all that bears it
DELETE FROM result_crawls WHERE name = :crawl
