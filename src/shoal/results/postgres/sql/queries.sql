-- Statements of the PostgreSQL results store. Each is atomic by itself. $1 is the crawl's name. Rows
-- are passed as one array per column: one round trip for a whole batch. Placeholders in braces are
-- filled in: {page_arrays} and {file_arrays} by saving.py, all others by storable.py, for all stores.

-- save: store a batch; returns how many readings are now an item's current state
-- Items ($2 to $11): ids follow the order of arrival. Rows are written in the order of their keys, so
-- that two writers of the same items may wait for each other, but never deadlock. An item is updated
-- unless the stored reading is newer, or not old enough ($12). Of two scrapes at the same moment, the
-- one that arrives later wins. An item that was gone counts as new. Whether a reading is a change is
-- decided on the locked row (changed_at), so that two writers cannot both count it. $13: whether
-- readings are kept; $14: whether those without a change are kept too. Rejected items: $15 to $21.
-- Pages: from $22 on.
WITH readings AS MATERIALIZED (
    SELECT nextval('items_id') AS id, r.*
    FROM unnest(
        $2::text[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::text[],
        $8::jsonb[], $9::text[], $10::boolean[], $11::timestamptz[]
    ) AS r (kind, key, scraped_at, content, fingerprint, url, data, host, is_newest, first_at)
),
stored AS (
    INSERT INTO items AS i (
        crawl, kind, key, id, scraped_at, first_at, changed_at, content, fingerprint, url, host,
        data
    )
    SELECT
        $1, kind, key, id, scraped_at, first_at, scraped_at, content, fingerprint, url, host,
        data
    FROM readings
    WHERE is_newest
    ORDER BY kind COLLATE "C", key COLLATE "C"
    ON CONFLICT (crawl, kind, key) DO UPDATE SET
        scraped_at = excluded.scraped_at,
        first_at = CASE WHEN i.gone_at IS NULL THEN i.first_at ELSE excluded.first_at END,
        changed_at = CASE
            WHEN i.gone_at IS NULL AND i.content = excluded.content THEN i.changed_at
            ELSE excluded.scraped_at
        END,
        content = excluded.content,
        fingerprint = excluded.fingerprint,
        url = excluded.url,
        host = excluded.host,
        data = excluded.data,
        gone_at = NULL
    WHERE excluded.scraped_at = i.scraped_at
        OR excluded.scraped_at >= i.scraped_at + $12::interval
        OR i.gone_at IS NOT NULL
    RETURNING kind, key, scraped_at, changed_at, content, fingerprint, url, data
),
kept AS (
    INSERT INTO observations AS o (
        crawl, kind, key, scraped_at, content, fingerprint, url, data
    )
    SELECT $1, kind, key, scraped_at, content, fingerprint, url, data
    FROM stored
    WHERE $13::boolean AND ($14::boolean OR changed_at = scraped_at)
    ON CONFLICT (crawl, kind, key, scraped_at) DO UPDATE SET
        content = excluded.content,
        fingerprint = excluded.fingerprint,
        url = excluded.url,
        data = excluded.data
    WHERE o.content <> excluded.content
),
logged AS (
    INSERT INTO pages (crawl, {page_fields})
    SELECT $1, p.*
    FROM unnest({page_arrays}) AS p
    ON CONFLICT DO NOTHING
),
put_aside AS (
    INSERT INTO rejected (crawl, fingerprint, scraped_at, digest, kind, reason, url, data)
    SELECT $1, r.*
    FROM unnest(
        $15::bigint[], $16::timestamptz[], $17::bytea[], $18::text[], $19::text[], $20::text[],
        $21::text[]
    ) AS r
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM stored

-- save_late: add readings to the history that arrived after a newer one; $2 to $8 as for save
-- A reading is kept if it differs from the newest one, or if all are kept ($9), or if it replaces a
-- reading of the same moment.
INSERT INTO observations AS o (crawl, kind, key, scraped_at, content, fingerprint, url, data)
SELECT $1, r.*
FROM unnest(
    $2::text[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::text[], $8::jsonb[]
) AS r (kind, key, scraped_at, content, fingerprint, url, data)
JOIN items AS i ON i.crawl = $1 AND i.kind = r.kind AND i.key = r.key
WHERE i.scraped_at > r.scraped_at AND (
    $9::boolean
    OR i.content <> r.content
    OR EXISTS (
        SELECT FROM observations AS known
        WHERE known.crawl = $1
            AND known.kind = r.kind
            AND known.key = r.key
            AND known.scraped_at = r.scraped_at
    )
)
ON CONFLICT (crawl, kind, key, scraped_at) DO UPDATE SET
    content = excluded.content,
    fingerprint = excluded.fingerprint,
    url = excluded.url,
    data = excluded.data
WHERE o.content <> excluded.content

-- save_files: store file records; a stored file wins over one that is not, then the newest
-- Rows are written in the order of their keys, so that two writers never deadlock.
INSERT INTO files AS f (crawl, {file_fields})
SELECT $1, r.* FROM unnest({file_arrays}) AS r ({file_fields})
ORDER BY fingerprint
ON CONFLICT (crawl, fingerprint) DO UPDATE SET {file_changes}
WHERE (excluded.status = 'done', excluded.at) >= (f.status = 'done', f.at)

-- files_of: the records of some files ($2)
SELECT {file_fields} FROM files WHERE crawl = $1 AND fingerprint = ANY($2::bigint[])

-- files_after: one page of the stream of files, after a fingerprint
SELECT {file_fields}
FROM files
WHERE crawl = $1 AND fingerprint > $2
ORDER BY fingerprint
LIMIT $3

-- copy_files: copy the file records of an earlier crawl ($2), unless this one has its own
INSERT INTO files (crawl, {file_fields})
SELECT $1, {file_fields}
FROM files
WHERE crawl = $2
ORDER BY fingerprint
ON CONFLICT DO NOTHING

-- note_kinds: store the order of fields of new kinds
INSERT INTO kinds (crawl, kind, fields)
SELECT $1, k.* FROM unnest($2::text[], $3::jsonb[]) AS k
ON CONFLICT DO NOTHING

-- kinds: the order of fields of each kind
SELECT kind, fields FROM kinds WHERE crawl = $1

-- items_after: one page of the stream of items, filtered
-- $2: the id to continue after; $3 kind, $4 since, $5 changed, $6 gone; $7 and $8: the maximum number
-- of rows and bytes. An item counts as changed if it changed in this crawl, or differs from the
-- previous crawl that this one builds on.
SELECT id, kind, key, fingerprint, scraped_at, gone_at, url, data
FROM (
    SELECT *, sum(octet_length(data)) OVER (ORDER BY id) - octet_length(data) AS bytes_before
    FROM (
        SELECT id, kind, key, fingerprint, scraped_at, gone_at, url, data::text AS data
        FROM items AS i
        WHERE crawl = $1
            AND id > $2
            AND ($3::text IS NULL OR kind = $3)
            AND ($4::timestamptz IS NULL
                OR CASE
                    WHEN $5::boolean THEN changed_at ELSE coalesce(gone_at, scraped_at)
                END >= $4)
            AND (NOT $5::boolean OR changed_at > first_at OR EXISTS (
                SELECT FROM items AS earlier
                WHERE earlier.crawl = (SELECT previous FROM crawls WHERE name = $1)
                    AND earlier.kind = i.kind AND earlier.key = i.key
                    AND earlier.content <> i.content AND earlier.gone_at IS NULL
            ))
            AND ($6::boolean OR gone_at IS NULL)
        ORDER BY id
        LIMIT $7
    ) AS next
) AS measured
WHERE bytes_before < $8
ORDER BY id

-- items_behind: one page of the stream of items by kind and key, after kind $2 and key $3
-- $4: only this kind; $5: a moment; $6 and $7: the maximum number of rows and bytes. Returns the
-- items that exist now or, as far as readings were kept, existed at that moment.
SELECT id, kind, key, fingerprint, scraped_at, gone_at, url, data
FROM (
    SELECT
        *,
        sum(octet_length(data)) OVER (ORDER BY kind, key) - octet_length(data) AS bytes_before
    FROM (
        SELECT
            id, kind, key, fingerprint, scraped_at, gone_at, url,
            CASE
                WHEN $5::timestamptz IS NULL OR changed_at <= $5 THEN data::text
                ELSE coalesce(
                    (
                        SELECT o.data::text
                        FROM observations AS o
                        WHERE o.crawl = i.crawl AND o.kind = i.kind AND o.key = i.key
                            AND o.scraped_at <= $5
                        ORDER BY o.scraped_at DESC
                        LIMIT 1
                    ),
                    '{}'
                )
            END AS data
        FROM items AS i
        WHERE crawl = $1
            AND (kind, key) > ($2::text, $3::text)
            AND ($4::text IS NULL OR kind = $4)
            AND ($5::timestamptz IS NULL OR first_at <= $5)
            AND (gone_at IS NULL OR gone_at > $5)
        ORDER BY kind, key
        LIMIT $6
    ) AS next
) AS measured
WHERE bytes_before < $7
ORDER BY kind, key

-- items_of: the items last read from one page
SELECT id, kind, key, fingerprint, scraped_at, gone_at, url, data::text
FROM items
WHERE crawl = $1 AND fingerprint = $2
ORDER BY id

-- history: the kept readings of one item, oldest first
SELECT 0, kind, key, fingerprint, scraped_at, NULL, url, data::text
FROM observations
WHERE crawl = $1 AND kind = $2 AND key = $3
ORDER BY scraped_at

-- known_pages: the last successful visits to pages ($2), one row for each item of a page
-- A page without items has one row. The items of a page with links to follow are not read, as they
-- are not needed. `fields` is the order of an item's fields.
SELECT
    p.fingerprint AS page, v.*,
    (SELECT count(*) FROM rejected WHERE crawl = $1 AND fingerprint = p.fingerprint) AS rejected,
    i.id, i.kind, i.key, i.fingerprint, i.scraped_at, i.gone_at, i.url, i.data::text AS data,
    k.fields
FROM unnest($2::bigint[]) AS p (fingerprint)
CROSS JOIN LATERAL (
    SELECT etag, last_modified, max(links) OVER () AS links, items AS read, digest, simhash
    FROM pages
    WHERE crawl = $1
        AND fingerprint = p.fingerprint
        AND {has_read}
    ORDER BY started_at DESC, attempt DESC, worker DESC
    LIMIT 1
) AS v
LEFT JOIN items AS i
    ON v.links = 0 AND i.crawl = $1 AND i.fingerprint = p.fingerprint AND i.gone_at IS NULL
LEFT JOIN kinds AS k ON k.crawl = $1 AND k.kind = i.kind
ORDER BY i.id

-- mark_gone: copy the items of an earlier crawl ($2) that this one has not found, as gone ($3)
-- Items of a page that gave this crawl a rejected item are left out, as they may be that one. Rows
-- are written in the order of their keys, as in save. The order of fields of new kinds is copied too.
WITH missing AS MATERIALIZED (
    SELECT i.*
    FROM items AS i
    WHERE i.crawl = $2
        AND NOT EXISTS (
            SELECT FROM items AS found
            WHERE found.crawl = $1 AND found.kind = i.kind AND found.key = i.key
        )
        AND (
            i.gone_at IS NOT NULL
            OR NOT EXISTS (
                SELECT FROM rejected AS r
                WHERE r.crawl = $1 AND r.fingerprint = i.fingerprint
            )
        )
),
fields AS (
    INSERT INTO kinds (crawl, kind, fields)
    SELECT $1, kind, fields
    FROM kinds
    WHERE crawl = $2 AND kind IN (SELECT kind FROM missing)
    ON CONFLICT DO NOTHING
)
INSERT INTO items (
    crawl, kind, key, id, scraped_at, first_at, changed_at, content, fingerprint, url, host, data,
    gone_at
)
SELECT
    $1, kind, key, nextval('items_id'), scraped_at, first_at, changed_at, content, fingerprint, url,
    host, data, coalesce(gone_at, $3)
FROM missing
ORDER BY kind COLLATE "C", key COLLATE "C"
ON CONFLICT DO NOTHING

-- count_gone: how many items are gone in this crawl that were not gone in an earlier one ($2)
SELECT count(*)
FROM items AS i
JOIN items AS earlier
    ON earlier.crawl = $2 AND earlier.kind = i.kind AND earlier.key = i.key
WHERE i.crawl = $1 AND i.gone_at IS NOT NULL AND earlier.gone_at IS NULL

-- count_items: the number of items of each kind, without those that are gone
SELECT kind, sum(number)::bigint AS count
FROM (
    SELECT kind, count(*) AS number FROM items WHERE crawl = $1 GROUP BY kind
    UNION ALL
    SELECT kind, -count(*) FROM items WHERE crawl = $1 AND gone_at IS NOT NULL GROUP BY kind
) AS counted
GROUP BY kind
HAVING sum(number) > 0
ORDER BY kind

-- pages_of: every try at one URL, oldest first
SELECT {page_fields}
FROM pages
WHERE crawl = $1 AND fingerprint = $2
ORDER BY started_at, attempt, worker

-- tasks_at: the tasks that were tried at one of these URLs ($2)
SELECT DISTINCT fingerprint FROM pages WHERE crawl = $1 AND url = ANY($2::text[]) LIMIT $3

-- rejected_of: the rejected items of one URL
SELECT id, fingerprint, scraped_at, kind, reason, url, data
FROM rejected
WHERE crawl = $1 AND fingerprint = $2
ORDER BY id

-- rejected_after: one page of the stream of rejected items
SELECT id, fingerprint, scraped_at, kind, reason, url, data
FROM rejected
WHERE crawl = $1 AND id > $2
ORDER BY id
LIMIT $3

-- signatures_after: one page of the stream of simhashes
SELECT fingerprint, started_at, attempt, worker, simhash
FROM pages
WHERE crawl = $1
    AND (fingerprint, started_at, attempt, worker) > ($2, $3, $4, $5)
    AND simhash IS NOT NULL
ORDER BY fingerprint, started_at, attempt, worker
LIMIT $6

-- mark_near: store which pages are nearly the same as others
INSERT INTO near_pages (crawl, fingerprint, like_fingerprint, distance)
SELECT $1, p.* FROM unnest($2::bigint[], $3::bigint[], $4::integer[]) AS p
ON CONFLICT (crawl, fingerprint) DO UPDATE SET
    like_fingerprint = excluded.like_fingerprint,
    distance = excluded.distance

-- near_of: the page that a page is nearly the same as
SELECT like_fingerprint, distance FROM near_pages WHERE crawl = $1 AND fingerprint = $2

-- note_of: how the crawl last ran
SELECT frontier, targets, archive, previous, file_store FROM crawls WHERE name = $1

-- note_run: store how the crawl runs
INSERT INTO crawls (name, frontier, targets, archive, previous, file_store)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE SET
    frontier = excluded.frontier,
    targets = excluded.targets,
    archive = excluded.archive,
    previous = excluded.previous,
    file_store = excluded.file_store

-- forget: delete everything that belongs to a crawl
-- The order of fields (kinds) stays, as other processes remember that they have stored it.
WITH
gone_items AS (DELETE FROM items WHERE crawl = $1),
gone_observations AS (DELETE FROM observations WHERE crawl = $1),
gone_pages AS (DELETE FROM pages WHERE crawl = $1),
gone_rejected AS (DELETE FROM rejected WHERE crawl = $1),
gone_near AS (DELETE FROM near_pages WHERE crawl = $1),
gone_files AS (DELETE FROM files WHERE crawl = $1)
DELETE FROM crawls WHERE name = $1

-- has_versions: whether any version of the schema was applied here
SELECT to_regclass('shoal_versions') IS NOT NULL

-- version: the version of the schema
SELECT coalesce(max(version), 0) FROM shoal_versions

-- lock_schema: take the lock for changing the schema, until the end of the transaction
SELECT pg_advisory_xact_lock(hashtext('shoal schema ' || current_schema()))

-- lock_defaults: lock the default tables, so that no row gets in while its month's table is created
-- Gives up after lock_timeout and is tried again, so that no writer waits for long.
LOCK TABLE pages_default, observations_default IN ACCESS EXCLUSIVE MODE

-- months: the partitions of a table ($1)
SELECT c.relname
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass($1)
ORDER BY c.relname
