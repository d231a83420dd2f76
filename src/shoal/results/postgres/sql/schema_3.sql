-- Version 3: validators of pages (ETag, Last-Modified), and items that are gone.

ALTER TABLE pages ADD COLUMN etag text NOT NULL DEFAULT '';
ALTER TABLE pages ADD COLUMN last_modified text NOT NULL DEFAULT '';

ALTER TABLE items ADD COLUMN gone_at timestamptz;  -- null: not gone

-- To count without reading the items.
CREATE INDEX items_gone ON items (crawl, kind) WHERE gone_at IS NOT NULL;
