-- Statements of the SQLite results store. Writes take their values in the order of the columns;
-- reads take the crawl's name as :crawl. The save_ and forget_ statements run in one transaction
-- (BEGIN IMMEDIATE), so a batch is stored, and a crawl deleted, completely or not at all.
-- Placeholders in braces are filled in: {rows} for each execution, all others by storable.py, for all
-- stores.

-- add_crawl: give a crawl its number, unless it has one
INSERT INTO result_crawls (name) VALUES (:crawl) ON CONFLICT (name) DO NOTHING

-- crawl_id: the number of a crawl
SELECT id FROM result_crawls WHERE name = :crawl

-- save_items: insert items, or update them unless the stored reading is newer, or not old enough
-- Of two scrapes at the same moment, the one that arrives later wins. An item that was gone counts as
-- new. Data is passed as UTF-8 bytes.
WITH reading (crawl, kind, key, fingerprint, scraped_at, content, url, data) AS (VALUES {rows})
INSERT INTO items (
    crawl, kind, key, fingerprint, scraped_at, first_at, changed_at, content, url, data
)
SELECT
    crawl, kind, key, fingerprint, scraped_at, scraped_at, scraped_at, content, url,
    CAST(data AS TEXT)
FROM reading
WHERE true
ON CONFLICT (crawl, kind, key) DO UPDATE SET
    fingerprint = excluded.fingerprint,
    scraped_at = excluded.scraped_at,
    first_at = iif(gone_at IS NULL, first_at, excluded.scraped_at),
    changed_at = iif(
        gone_at IS NULL AND content = excluded.content, changed_at, excluded.scraped_at
    ),
    content = excluded.content,
    url = excluded.url,
    data = excluded.data,
    gone_at = NULL
WHERE excluded.scraped_at >= scraped_at + ?
    OR excluded.scraped_at = scraped_at
    OR gone_at IS NOT NULL

-- save_observations: add readings to the history of items, after save_items, with the same rows
-- The newest reading of an item is kept if it is a change. One that arrives after a newer one is kept
-- if it differs from that, unless refresh_s is set. `always` keeps readings without a change, too. If
-- a better spider reads the same moment again, its reading replaces the first one.
WITH
reading (crawl, kind, key, fingerprint, scraped_at, content, url, data) AS (VALUES {rows}),
how (refresh_s, always) AS (VALUES (?, ?))
INSERT OR REPLACE INTO observations (item, scraped_at, fingerprint, url, data)
SELECT i.id, r.scraped_at, r.fingerprint, r.url, CAST(r.data AS TEXT)
FROM reading AS r CROSS JOIN how CROSS JOIN items AS i
WHERE i.crawl = r.crawl AND i.kind = r.kind AND i.key = r.key AND (
    i.scraped_at = r.scraped_at AND (always OR i.changed_at = r.scraped_at)
    OR i.scraped_at > r.scraped_at AND refresh_s = 0 AND (always OR i.content <> r.content)
    OR i.scraped_at > r.scraped_at AND EXISTS (
        SELECT 1 FROM observations AS o
        WHERE o.item = i.id AND o.scraped_at = r.scraped_at
    )
)

-- save_pages: store tries in the page log, each once
INSERT INTO pages (crawl, {page_fields})
VALUES {rows}
ON CONFLICT (crawl, fingerprint, started_at, attempt, worker) DO NOTHING

-- save_rejected: store rejected items, each once
INSERT INTO rejected (crawl, fingerprint, scraped_at, digest, kind, reason, url, data)
VALUES {rows}
ON CONFLICT (crawl, fingerprint, scraped_at, digest) DO NOTHING

-- save_files: store file records; a stored file wins over one that is not, then the newest
INSERT INTO files (crawl, {file_fields})
VALUES {rows}
ON CONFLICT (crawl, fingerprint) DO UPDATE SET {file_changes}
WHERE (excluded.status = 'done', excluded.at) >= (files.status = 'done', files.at)

-- files_of: the records of some files (a JSON array of fingerprints)
SELECT {file_fields}
FROM files
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND fingerprint IN (SELECT value FROM json_each(:fingerprints))

-- files_after: one page of the stream of files
SELECT {file_fields}
FROM files
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint > :after
ORDER BY fingerprint
LIMIT :limit

-- copy_files: copy the file records of :previous to :crawl, unless that has its own
INSERT INTO files (crawl, {file_fields})
SELECT own.id, {file_fields}
FROM files JOIN result_crawls AS own ON own.name = :crawl
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :previous)
ON CONFLICT (crawl, fingerprint) DO NOTHING

-- items_after: one page of the stream of items, filtered
-- Returns the id to continue after, then the item; data, as bytes, comes last. An item counts as
-- changed if it changed in this crawl, or differs from the previous crawl that this one builds on.
SELECT id, kind, key, fingerprint, scraped_at, gone_at, url, CAST(data AS BLOB)
FROM items AS i
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND id > :after
    AND (:kind IS NULL OR kind = :kind)
    AND (:since IS NULL OR iif(:changed, changed_at, coalesce(gone_at, scraped_at)) >= :since)
    AND (NOT :changed OR changed_at > first_at OR EXISTS (
        SELECT 1 FROM items AS earlier
        WHERE earlier.crawl = (
                SELECT id FROM result_crawls
                WHERE name = (SELECT previous FROM result_crawls WHERE name = :crawl)
            )
            AND earlier.kind = i.kind AND earlier.key = i.key
            AND earlier.content <> i.content AND earlier.gone_at IS NULL
    ))
    AND (:gone OR gone_at IS NULL)
ORDER BY id
LIMIT :limit

-- items_behind: one page of the stream of items by kind and key, after :after_kind and :after
-- Returns the items of one kind (:wanted) or all that exist now or, as far as readings were kept,
-- existed at a moment (:at).
SELECT
    id, kind, key, fingerprint, scraped_at, gone_at, url,
    CAST(
        CASE
            WHEN :at IS NULL OR changed_at <= :at THEN data
            ELSE coalesce(
                (
                    SELECT o.data
                    FROM observations AS o
                    WHERE o.item = i.id AND o.scraped_at <= :at
                    ORDER BY o.scraped_at DESC
                    LIMIT 1
                ),
                '{}'
            )
        END AS BLOB
    )
FROM items AS i
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND (kind, key) > (:after_kind, :after)
    AND (:wanted IS NULL OR kind = :wanted)
    AND (:at IS NULL OR first_at <= :at)
    AND (gone_at IS NULL OR gone_at > :at)
ORDER BY kind, key
LIMIT :limit

-- history: the kept readings of one item, oldest first
SELECT i.id, i.kind, i.key, o.fingerprint, o.scraped_at, NULL, o.url, CAST(o.data AS BLOB)
FROM items AS i JOIN observations AS o ON o.item = i.id
WHERE i.crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND i.kind = :kind AND i.key = :key
ORDER BY o.scraped_at

-- items_of: the items last read from one page
SELECT id, kind, key, fingerprint, scraped_at, gone_at, url, CAST(data AS BLOB)
FROM items
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint
ORDER BY id

-- known_page: the last successful visit to a page, one row for each of its items
-- A page without items has one row. The items of a page with links to follow are not read, as they
-- are not needed.
WITH visit AS (
    SELECT etag, last_modified, max(links) OVER () AS links, items, digest, simhash
    FROM pages
    WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
        AND fingerprint = :fingerprint
        AND {has_read}
    ORDER BY started_at DESC, id DESC
    LIMIT 1
)
SELECT
    v.etag, v.last_modified, v.links, v.items,
    (
        SELECT count(*)
        FROM rejected
        WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
            AND fingerprint = :fingerprint
    ),
    v.digest, v.simhash,
    i.id, i.kind, i.key, i.fingerprint, i.scraped_at, i.gone_at, i.url, CAST(i.data AS BLOB)
FROM visit AS v
LEFT JOIN items AS i
    ON v.links = 0
    AND i.crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND i.fingerprint = :fingerprint
    AND i.gone_at IS NULL
ORDER BY i.id

-- mark_gone: copy the items of :previous that :crawl has not found, as gone (:at)
-- Items of a page that gave :crawl a rejected item are left out, as they may be that one.
INSERT INTO items (
    crawl, kind, key, fingerprint, scraped_at, first_at, changed_at, content, url, data, gone_at
)
SELECT
    own.id, i.kind, i.key, i.fingerprint, i.scraped_at, i.first_at, i.changed_at, i.content, i.url,
    i.data, coalesce(i.gone_at, :at)
FROM items AS i JOIN result_crawls AS own ON own.name = :crawl
WHERE i.crawl = (SELECT id FROM result_crawls WHERE name = :previous)
    AND NOT EXISTS (
        SELECT 1 FROM items AS found
        WHERE found.crawl = own.id AND found.kind = i.kind AND found.key = i.key
    )
    AND (
        i.gone_at IS NOT NULL
        OR NOT EXISTS (
            SELECT 1 FROM rejected AS r
            WHERE r.crawl = own.id AND r.fingerprint = i.fingerprint
        )
    )
ORDER BY i.id

-- count_gone: how many items are gone in :crawl that were not gone in :previous
SELECT count(*)
FROM items AS i JOIN items AS earlier
    ON earlier.crawl = (SELECT id FROM result_crawls WHERE name = :previous)
    AND earlier.kind = i.kind AND earlier.key = i.key
WHERE i.crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND i.gone_at IS NOT NULL AND earlier.gone_at IS NULL

-- count_items: the number of items of each kind, without those that are gone
SELECT kind, sum(number)
FROM (
    SELECT kind, count(*) AS number
    FROM items
    WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    GROUP BY kind
    UNION ALL
    SELECT kind, -count(*)
    FROM items
    WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND gone_at IS NOT NULL
    GROUP BY kind
)
GROUP BY kind
HAVING sum(number) > 0
ORDER BY kind

-- pages_of: every try at one URL, oldest first
SELECT {page_fields}
FROM pages
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint
ORDER BY started_at, id

-- tasks_at: the tasks that were tried at one of these URLs (a JSON array)
SELECT DISTINCT fingerprint
FROM pages
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND url IN (SELECT value FROM json_each(:urls))
LIMIT :limit

-- rejected_of: the rejected items of one URL
SELECT id, fingerprint, scraped_at, kind, reason, url, data
FROM rejected
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint
ORDER BY id

-- rejected_after: one page of the stream of rejected items
-- Returns the id to continue after, then the rejected item; data comes last.
SELECT id, fingerprint, scraped_at, kind, reason, url, data
FROM rejected
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND id > :after
ORDER BY id
LIMIT :limit

-- signatures_after: one page of the stream of simhashes
-- Returns the id to continue after, then fingerprint and simhash.
SELECT id, fingerprint, simhash
FROM pages
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
    AND id > :after AND simhash IS NOT NULL
ORDER BY id
LIMIT :limit

-- mark_near: store that a page is nearly the same as another one
INSERT OR REPLACE INTO near_pages (crawl, fingerprint, like_fingerprint, distance)
VALUES (?, ?, ?, ?)

-- near_of: the page that a page is nearly the same as
SELECT like_fingerprint, distance
FROM near_pages
WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl) AND fingerprint = :fingerprint

-- note_of: how the crawl last ran
SELECT frontier, targets, archive, previous, file_store
FROM result_crawls
WHERE name = :crawl AND frontier <> ''

-- note_run: store how the crawl runs
INSERT INTO result_crawls (name, frontier, targets, archive, previous, file_store)
VALUES (:crawl, :frontier, :targets, :archive, :previous, :file_store)
ON CONFLICT (name) DO UPDATE SET
    frontier = excluded.frontier,
    targets = excluded.targets,
    archive = excluded.archive,
    previous = excluded.previous,
    file_store = excluded.file_store

-- prune_observations: remove readings from before a moment
DELETE FROM observations WHERE scraped_at < :before

-- prune_pages: remove page log records from before a moment
DELETE FROM pages WHERE started_at < :before

-- old_observations: how many prune_observations would remove
SELECT count(*) FROM observations WHERE scraped_at < :before

-- old_pages: how many prune_pages would remove
SELECT count(*) FROM pages WHERE started_at < :before

-- forget_observations: delete the readings of a crawl's items, before the items
DELETE FROM observations WHERE item IN (
    SELECT id FROM items
    WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)
)

-- forget_near: delete a crawl's near duplicates
DELETE FROM near_pages WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_items: delete a crawl's items
DELETE FROM items WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_pages: delete a crawl's page log
DELETE FROM pages WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_rejected: delete a crawl's rejected items
DELETE FROM rejected WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_files: delete a crawl's file records
DELETE FROM files WHERE crawl = (SELECT id FROM result_crawls WHERE name = :crawl)

-- forget_crawl: delete a crawl's number, after all rows that refer to it
DELETE FROM result_crawls WHERE name = :crawl
