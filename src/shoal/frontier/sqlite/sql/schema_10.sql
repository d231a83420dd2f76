-- Version 10: the spiders' own counters, see core/own_counts.py.

CREATE TABLE IF NOT EXISTS own_counts (
    crawl_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (crawl_id, name)
) WITHOUT ROWID;
