-- The table of one month. What the default table has of that month moves into it; the three steps
-- are one transaction, so nobody sees a row twice or not at all.
CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS);
WITH moved AS (
    DELETE FROM {table}_default WHERE {time} >= '{begin}' AND {time} < '{end}' RETURNING *
)
INSERT INTO {name} SELECT * FROM moved;
ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ('{begin}') TO ('{end}');
