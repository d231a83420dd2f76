-- Version 2: pages that were done elsewhere, before this crawl knew them.
--
-- remembered  known fingerprints without a task; none of them is in `tasks`

CREATE TABLE remembered (
    crawl_id INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    PRIMARY KEY (crawl_id, fingerprint)
) WITHOUT ROWID;
