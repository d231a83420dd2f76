-- Version 3: what servers said of the version of a page, and items that are gone.

ALTER TABLE pages ADD COLUMN etag TEXT NOT NULL DEFAULT '';

ALTER TABLE pages ADD COLUMN last_modified TEXT NOT NULL DEFAULT '';

-- Null while an item is there. Behind `data`, which costs nothing: whoever reads one of them reads or
-- writes the other too.
ALTER TABLE items ADD COLUMN gone_at REAL;

-- For counting without reading the items.
CREATE INDEX items_gone ON items (crawl, kind) WHERE gone_at IS NOT NULL;
