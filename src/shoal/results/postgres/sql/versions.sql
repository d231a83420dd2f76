-- Which versions of the schema were made here. The newest is the one in force.
CREATE TABLE IF NOT EXISTS shoal_versions (
    version integer PRIMARY KEY,
    made_at timestamptz NOT NULL DEFAULT now()
);
