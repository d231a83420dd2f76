-- Version 7: the cookies of chains as JSON, see core/cookies.py. Deleted when no task of the chain
-- is left.

CREATE TABLE jars (
    crawl_id INTEGER NOT NULL,
    chain TEXT NOT NULL,
    jar BLOB NOT NULL,
    PRIMARY KEY (crawl_id, chain)
) WITHOUT ROWID;
