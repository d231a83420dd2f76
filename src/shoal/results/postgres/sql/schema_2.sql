-- Version 2: archived pages, pages that are nearly the same, how to read a crawl again, and the order
-- of fields.

ALTER TABLE pages ADD COLUMN simhash bigint;
ALTER TABLE pages ADD COLUMN archived text NOT NULL DEFAULT '';

CREATE TABLE near_pages (
    crawl text COLLATE "C" NOT NULL,
    fingerprint bigint NOT NULL,
    like_fingerprint bigint NOT NULL,
    distance integer NOT NULL,
    PRIMARY KEY (crawl, fingerprint)
);

ALTER TABLE crawls ADD COLUMN targets text[] NOT NULL DEFAULT '{}';
ALTER TABLE crawls ADD COLUMN archive text NOT NULL DEFAULT '';

-- jsonb does not keep the order of an item's fields. This is the order of the first one of each kind.
CREATE TABLE kinds (
    crawl text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    fields jsonb NOT NULL,
    PRIMARY KEY (crawl, kind)
);
