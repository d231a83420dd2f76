-- Version 2: archived pages, near duplicates, the targets and archive of crawls (to extract again
-- from archived pages), and the order of fields.

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

-- The order of fields, taken from the first item of each kind, as jsonb does not keep it.
CREATE TABLE kinds (
    crawl text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    fields jsonb NOT NULL,
    PRIMARY KEY (crawl, kind)
);
