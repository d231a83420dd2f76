"""The coordinators' shared notes and leadership, in the frontier's SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from shoal.drivers.sqlfiles import load_queries
from shoal.drivers.sqlite import Database, transaction
from shoal.frontier.board import Deposed, Leader, Notes

SQL = load_queries("shoal.frontier.sqlite", "notes.sql")


class SqliteNotes(Notes):
    """Notes for the processes of one machine."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock

    async def lead(self, holder: str, ttl_s: float) -> Leader | None:
        def take(connection: sqlite3.Connection) -> Leader | None:
            with transaction(connection):
                now = self._clock()
                was, term, until = connection.execute(SQL["leader"]).fetchone() or ("", 0, 0.0)
                if until > now + ttl_s:
                    # No term is that long: the clock was set back.
                    connection.execute(SQL["lead"], (was, term, now + ttl_s))
                if now < until and was != holder:
                    return None
                # A leader whose time ran out keeps its term if no other has led since.
                term += was != holder or until == 0
                connection.execute(SQL["lead"], (holder, term, now + ttl_s))
            return Leader(holder, int(term))

        return await self._db.run(take)

    async def resign(self, holder: str) -> None:
        def leave(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute(SQL["resign"], (holder,))

        await self._db.run(leave)

    async def leader(self) -> Leader | None:
        def look(connection: sqlite3.Connection) -> Leader | None:
            holder, term, until = connection.execute(SQL["leader"]).fetchone() or ("", 0, 0.0)
            return Leader(holder, term) if self._clock() < until else None

        return await self._db.run(look)

    async def write(
        self, topic: str, name: str, text: bytes | None, leader: Leader | None = None
    ) -> None:
        def put(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                if leader is not None and self._is_over(connection, leader):
                    raise Deposed
                if text is None:
                    connection.execute(SQL["delete"], (topic, name))
                else:
                    connection.execute(SQL["write"], (topic, name, text))

        await self._db.run(put)

    async def swap(self, topic: str, name: str, known: bytes | None, text: bytes) -> bool:
        def put(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                row = connection.execute(SQL["read"], (topic, name)).fetchone()
                if (row[0] if row else None) != known:
                    return False
                connection.execute(SQL["write"], (topic, name, text))
            return True

        return await self._db.run(put)

    def _is_over(self, connection: sqlite3.Connection, leader: Leader) -> bool:
        row = connection.execute(SQL["leader"]).fetchone()
        return row is None or row[:2] != (leader.holder, leader.term) or row[2] == 0

    async def read(self, topic: str, name: str) -> bytes | None:
        row = await self._db.run(lambda c: c.execute(SQL["read"], (topic, name)).fetchone())
        return row[0] if row else None

    async def all(self, topic: str) -> dict[str, bytes]:
        return await self._db.run(lambda c: dict(c.execute(SQL["all"], (topic,))))
