"""Results in PostgreSQL: one database for a whole fleet."""

from shoal.results.postgres.schema import schema_text
from shoal.results.postgres.store import PostgresResults

__all__ = ["PostgresResults", "schema_text"]
