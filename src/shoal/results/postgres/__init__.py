"""The results store in PostgreSQL, for a whole fleet. Needs the extra `postgres`."""

from shoal.results.postgres.schema import schema_text
from shoal.results.postgres.store import PostgresResults

__all__ = ["PostgresResults", "schema_text"]
