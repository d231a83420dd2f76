-- Version 6: the files of items, with their status and place.

CREATE TABLE files (
    crawl text COLLATE "C" NOT NULL,
    fingerprint bigint NOT NULL,
    url text NOT NULL,
    status text NOT NULL,
    at timestamptz NOT NULL,
    error text NOT NULL,
    type text NOT NULL,
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    place text NOT NULL,
    etag text NOT NULL,
    last_modified text NOT NULL,
    PRIMARY KEY (crawl, fingerprint)
);

ALTER TABLE crawls ADD COLUMN file_store text NOT NULL DEFAULT '';
