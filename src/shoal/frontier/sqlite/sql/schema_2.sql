-- Version 2: what was done elsewhere, before this crawl knew of it.
--
-- remembered  fingerprints that are known and are no tasks; none of them is in `tasks`

CREATE TABLE remembered (
    crawl_id INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    PRIMARY KEY (crawl_id, fingerprint)
) WITHOUT ROWID;
