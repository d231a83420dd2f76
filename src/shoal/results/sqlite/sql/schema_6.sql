-- Version 6: the files of items, with their status and place.

CREATE TABLE files (
    crawl INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    url TEXT NOT NULL,
    status TEXT NOT NULL,
    at REAL NOT NULL,
    error TEXT NOT NULL,
    type TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    place TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    PRIMARY KEY (crawl, fingerprint)
) WITHOUT ROWID;

ALTER TABLE result_crawls ADD COLUMN file_store TEXT NOT NULL DEFAULT '';
