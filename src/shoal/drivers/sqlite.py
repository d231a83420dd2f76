"""SQLite for the frontier and the results: one connection, one thread, short transactions.

Several processes share the file (WAL). Every write is one BEGIN IMMEDIATE ... COMMIT, so a process
that is killed leaves either a whole step or nothing of it.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import EMFILE, ENFILE
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from shoal.errors import ConfigError, NewerFormat, StorageBusy, StorageError, StorageFailed

T = TypeVar("T")

BUSY_TIMEOUT_S = 30.0

OLDEST_SQLITE = (3, 33)
"""The first version with UPDATE ... FROM."""

MAX_ROWS = 64
"""The most rows that one statement writes."""

_VERSIONS = """
CREATE TABLE IF NOT EXISTS versions (part TEXT PRIMARY KEY, version INTEGER NOT NULL)
"""


def path_of(address: str) -> Path:
    """The file of a `sqlite:///path` address: relative with three slashes, absolute with four.

    Raises ConfigError if it is no such address.
    """
    scheme, _, rest = address.partition(":///")
    path = unquote(rest)
    if scheme != "sqlite" or not path or "\0" in path:
        raise ConfigError(f"not a SQLite address: {address!r} (write sqlite:///path.db)")
    return Path(path)


class Database:
    """A connection in a thread of its own: waiting for a lock never stops the event loop."""

    def __init__(
        self,
        path: Path,
        part: str,
        schema: Sequence[str],
        complete: Callable[[sqlite3.Connection], None] = lambda _: None,
    ) -> None:
        """`part` is what the tables are for: several parts may share a file, each with its own
        version. `complete` adds to the tables what may change without a new version."""
        self._path = path
        self._part = part
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"sqlite-{path.name}")
        self._connection: sqlite3.Connection | None = None
        self._schema = schema
        self._complete = complete
        self._wal: int | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in the database's thread. Errors of sqlite3 become StorageErrors."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._guarded, work)

    async def run_durably(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run`, but what was committed survives a power cut, not only the death of the process.

        SQLite's own way (synchronous = FULL) waits for the disk while it holds the write lock.
        Waiting after the commit lets other writers go on meanwhile.
        """

        def then_sync(connection: sqlite3.Connection) -> T:
            result = work(connection)
            self._sync()
            return result

        return await self.run(then_sync)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        self._thread.submit(self._disconnect)
        await asyncio.to_thread(self._thread.shutdown)

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._connected())
        except sqlite3.Error as error:
            raise self._mapped(error) from error
        except OSError as error:
            kind = StorageBusy if error.errno in (EMFILE, ENFILE) else StorageFailed
            raise kind(f"{self._path}: {error.strerror}") from error

    def _sync(self) -> None:
        if self._wal is None:
            self._wal = os.open(f"{self._path}-wal", os.O_RDWR)
        os.fsync(self._wal)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            oldest = ".".join(map(str, OLDEST_SQLITE))
            raise ConfigError(
                f"this Python has SQLite {sqlite3.sqlite_version}, which is older than {oldest}"
            )
        if not self._path.parent.is_dir():
            raise ConfigError(f"{self._path}: the folder does not exist")
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -65536")
            with transaction(connection):
                self._bring_up_to_date(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        connection.execute(_VERSIONS)
        noted = connection.execute("SELECT version FROM versions WHERE part = ?", [self._part])
        (version,) = noted.fetchone() or (0,)
        if version > len(self._schema):
            raise newer_file(self._path, self._part, version, len(self._schema))
        for script in self._schema[version:]:
            for statement in script.split(";\n"):
                connection.execute(statement)
        if version < len(self._schema):
            row = [self._part, len(self._schema)]
            connection.execute("INSERT OR REPLACE INTO versions VALUES (?, ?)", row)
        self._complete(connection)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._wal is not None:
            os.close(self._wal)
            self._wal = None

    def _mapped(self, error: sqlite3.Error) -> StorageError:
        code = getattr(error, "sqlite_errorname", "") or ""
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
            return StorageBusy(f"{self._path}: {error}")
        # A large statement needs a file for its journal. If connections use up all files that this
        # process may open, the statement has to wait.
        if code.startswith("SQLITE_CANTOPEN") and self._connection is not None:
            return StorageBusy(f"{self._path}: {error}")
        return StorageFailed(f"{self._path}: {error}")


def newer_file(path: Path | str, part: str, version: int, known: int) -> NewerFormat:
    """The error for a file that a later version of Shoal has upgraded."""
    return NewerFormat(
        f"{path} was written by a newer shoal ({part} version {version},"
        f" this one knows {known}): upgrade shoal, or use another file"
    )


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite itself does not wait if two processes do this to a new file."""
    give_up_at = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > give_up_at:
                raise
            time.sleep(0.005)
        else:
            return


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all or nothing. It takes the write lock first, so no step uses stale reads."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite may have rolled back already, as on a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def write_rows(
    connection: sqlite3.Connection, query: str, rows: Sequence[Sequence[Any]], *others: Any
) -> None:
    """Run a statement for many rows at once. They replace `{rows}` in the statement; `others` are
    the values of its parameters after that.

    Each statement releases the interpreter's lock and has to get it back from the event loop, so
    one statement for each row would do little else. SQLite compiles a statement anew for each
    number of rows, so only few numbers are used: powers of two.
    """
    start = 0
    while left := len(rows) - start:
        count = min(1 << (left.bit_length() - 1), MAX_ROWS)
        values = chain.from_iterable(rows[start : start + count])
        connection.execute(_for_rows(query, count, len(rows[start])), [*values, *others])
        start += count


@lru_cache
def _for_rows(query: str, count: int, width: int) -> str:
    row = "(" + ", ".join("?" * width) + ")"
    return query.replace("{rows}", ", ".join([row] * count))
