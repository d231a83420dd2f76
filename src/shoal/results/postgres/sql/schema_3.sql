-- Version 3: what servers said of the version of a page, and items that are gone.

ALTER TABLE pages ADD COLUMN etag text NOT NULL DEFAULT '';
ALTER TABLE pages ADD COLUMN last_modified text NOT NULL DEFAULT '';

ALTER TABLE items ADD COLUMN gone_at timestamptz;  -- null: it is there

-- For counting without reading the items.
CREATE INDEX items_gone ON items (crawl, kind) WHERE gone_at IS NOT NULL;
