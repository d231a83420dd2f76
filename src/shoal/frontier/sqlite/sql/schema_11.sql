-- Version 11: links that a limit of their crawl has counted, see core/shapes.py.
--
-- alike.shape     of their addresses; empty: all links of the host
-- alike.pages     how many were queued. Shapes that were met once make room for others
-- alike.kept_out  how many were not, because of the limit for the shape, or for the host

CREATE TABLE alike (
    host_id INTEGER NOT NULL,
    shape TEXT NOT NULL,
    pages INTEGER NOT NULL,
    kept_out INTEGER NOT NULL,
    PRIMARY KEY (host_id, shape)
) WITHOUT ROWID;
