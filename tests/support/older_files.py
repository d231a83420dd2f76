"""SQL that turns a current SQLite file into one as earlier versions left it."""

WITHOUT_KINDS = """
DROP TABLE alike;
DROP TABLE failures;
ALTER TABLE tasks DROP COLUMN kind;
ALTER TABLE tasks RENAME COLUMN since TO leased_at;
DROP INDEX tasks_dead;
CREATE INDEX tasks_dead ON tasks (crawl_id, id) WHERE state = 4;
UPDATE versions SET version = 8 WHERE part = 'frontier';
"""
"""Back to version 8 of the frontier's schema."""
