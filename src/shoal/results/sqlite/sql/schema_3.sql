-- Version 3: validators of pages (ETag, Last-Modified), and items that are gone.

ALTER TABLE pages ADD COLUMN etag TEXT NOT NULL DEFAULT '';

ALTER TABLE pages ADD COLUMN last_modified TEXT NOT NULL DEFAULT '';

-- Null unless the item is gone. It comes after `data`, which costs nothing: every statement that
-- reads one of them reads or writes the other too.
ALTER TABLE items ADD COLUMN gone_at REAL;

-- To count without reading the items.
CREATE INDEX items_gone ON items (crawl, kind) WHERE gone_at IS NOT NULL;
