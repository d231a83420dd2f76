-- Version 2: archived pages, pages that are nearly the same, and how to read a crawl again.

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
