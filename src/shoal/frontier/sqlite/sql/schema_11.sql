-- Version 11: counts for the limits on links with similar addresses, see core/shapes.py.
--
-- alike.shape     the shape of their addresses; empty: all links of the host
-- alike.pages     how many links were queued. Shapes met only once are deleted to make room
-- alike.kept_out  how many were kept out by the limit for the shape, or for the host

CREATE TABLE alike (
    host_id INTEGER NOT NULL,
    shape TEXT NOT NULL,
    pages INTEGER NOT NULL,
    kept_out INTEGER NOT NULL,
    PRIMARY KEY (host_id, shape)
) WITHOUT ROWID;
