"""Files of SQLite as earlier versions left them: what takes a present one back to them."""

WITHOUT_KINDS = """
DROP TABLE alike;
DROP TABLE failures;
ALTER TABLE tasks DROP COLUMN kind;
ALTER TABLE tasks RENAME COLUMN since TO leased_at;
DROP INDEX tasks_dead;
CREATE INDEX tasks_dead ON tasks (crawl_id, id) WHERE state = 4;
UPDATE versions SET version = 8 WHERE part = 'frontier';
"""
"""Version 8."""
