-- Create the table of one month, and move its rows there from the default table. The steps are one
-- transaction, so no reader sees a row twice or misses one.
CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS);
WITH moved AS (
    DELETE FROM {table}_default WHERE {time} >= '{begin}' AND {time} < '{end}' RETURNING *
)
INSERT INTO {name} SELECT * FROM moved;
ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ('{begin}') TO ('{end}');
