-- The versions of the schema that were applied here. The newest one is in force.
CREATE TABLE IF NOT EXISTS shoal_versions (
    version integer PRIMARY KEY,
    made_at timestamptz NOT NULL DEFAULT now()
);
