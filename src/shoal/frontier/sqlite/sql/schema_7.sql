-- Version 7: what a chain keeps of cookies, see core/cookies.py, as JSON. Gone when the chain has nothing left.

CREATE TABLE jars (
    crawl_id INTEGER NOT NULL,
    chain TEXT NOT NULL,
    jar BLOB NOT NULL,
    PRIMARY KEY (crawl_id, chain)
) WITHOUT ROWID;
