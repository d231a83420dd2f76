"""The tables of the PostgreSQL store, and a partition for each month.

The first process that connects creates the tables, or migrates them to the newest version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from asyncpg.exceptions import (
    DeadlockDetectedError,
    DuplicateTableError,
    InsufficientPrivilegeError,
    LockNotAvailableError,
)

from shoal.drivers.sqlfiles import load_schema, load_script
from shoal.errors import ConfigError, NewerFormat
from shoal.results.postgres.link import Connection
from shoal.results.storable import load_statements

PACKAGE = "shoal.results.postgres"
VERSIONS = load_schema(PACKAGE, *(f"schema_{version}.sql" for version in range(1, 7)))
MONTHS_AHEAD = 2
MONTH_TRIES = 5
LOCK_S = 2
"""How long to wait for a lock while others would have to wait behind it."""

PARTITIONED = {"observations": "scraped_at", "pages": "started_at"}
"""Tables with a partition for each month, and the column with the time that decides which."""

QUERIES = load_statements(PACKAGE)
_NOTE_VERSION = "INSERT INTO shoal_versions (version) VALUES ($1)"

log = logging.getLogger("shoal")


async def is_up_to_date(connection: Connection, shown: str) -> bool:
    """Whether the tables have this Shoal's version. Raises NewerFormat if they are newer."""
    return await _version(connection, shown) == len(VERSIONS)


async def bring_up_to_date(connection: Connection, shown: str) -> None:
    """Create or migrate the tables. Raises ConfigError without the permission to do so, or if
    another application uses a name."""
    version = await _version(connection, shown)
    try:
        await _change(connection, shown)
    except InsufficientPrivilegeError as error:
        raise ConfigError(
            f"{shown}: {error}: let the owner of the database make the tables, with what"
            f" `shoal results schema --from-version {version}` prints"
        ) from None
    except DuplicateTableError as error:
        raise ConfigError(
            f"{shown}: {error}: somebody else uses this name. Take another database, or another"
            " schema of this one (?search_path=NAME)"
        ) from None


async def make_months(connection: Connection, shown: str, now: datetime) -> None:
    """Create the tables of this month and the next ones. If that fails, the default tables take
    the rows anyway."""
    for _ in range(MONTH_TRIES):
        try:
            return await _make_months(connection, now)
        except (LockNotAvailableError, DeadlockDetectedError):
            continue
        except InsufficientPrivilegeError as error:
            log.warning("%s: the tables of the next months are missing, and %s", shown, error)
            return None
    return None  # The default tables were in use all the time. The next attempt is tomorrow.


async def month_tables(connection: Connection, table: str) -> list[str]:
    """The partitions of a table, without the default one."""
    rows = await connection.fetch(QUERIES["months"], table)
    return [name for (name,) in rows if not name.endswith("_default")]


def schema_text(from_version: int, now: datetime) -> str:
    """The SQL that creates the tables, or migrates them from a version, to be run by hand.

    Raises ConfigError if the version is unknown.
    """
    if from_version > len(VERSIONS):
        raise ConfigError(f"this shoal knows {len(VERSIONS)} versions of the tables")
    parts = [load_script(PACKAGE, "versions.sql")]
    for number, script in enumerate(VERSIONS[from_version:], from_version + 1):
        parts += [script, _NOTE_VERSION.replace("$1", f"{number}") + ";\n"]
    if from_version == 0:
        parts += [_month_script(table, month) for table in PARTITIONED for month in _months(now)]
    return "\n".join(["BEGIN;", *parts, "COMMIT;"])


async def _change(connection: Connection, shown: str) -> None:
    async with connection.transaction():
        await connection.execute(QUERIES["lock_schema"])
        # Also makes the server see tables that another process created while this one waited.
        await connection.execute(load_script(PACKAGE, "versions.sql"))
        version = await _version(connection, shown)
        for number, script in enumerate(VERSIONS[version:], version + 1):
            await connection.execute(script)
            await connection.execute(_NOTE_VERSION, number)


async def _make_months(connection: Connection, now: datetime) -> None:
    if not await _missing_months(connection, now):
        return
    async with connection.transaction():
        await connection.execute(QUERIES["lock_schema"])
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_S}s'")
        await connection.execute(QUERIES["lock_defaults"])
        for table, month in await _missing_months(connection, now):
            await connection.execute(_month_script(table, month))


async def _version(connection: Connection, shown: str) -> int:
    if not await connection.fetchval(QUERIES["has_versions"]):
        return 0
    version = int(await connection.fetchval(QUERIES["version"]))
    if version > len(VERSIONS):
        raise NewerFormat(
            f"{shown} was written by a newer shoal (version {version} of its tables, this one"
            f" knows {len(VERSIONS)}): upgrade shoal, or use another database"
        )
    return version


async def _missing_months(connection: Connection, now: datetime) -> list[tuple[str, datetime]]:
    missing = []
    for table in PARTITIONED:
        there = set(await month_tables(connection, table))
        missing += [(table, month) for month in _months(now) if _name(table, month) not in there]
    return missing


def _months(now: datetime) -> Iterator[datetime]:
    month = datetime(now.year, now.month, 1, tzinfo=UTC)
    for _ in range(MONTHS_AHEAD + 1):
        yield month
        month = next_month(month)


def next_month(month: datetime) -> datetime:
    """The first moment of the month after this one."""
    years, index = divmod(month.month, 12)
    return month.replace(year=month.year + years, month=index + 1)


def month_of(table: str, name: str) -> datetime | None:
    """The month of a table with this name. None if Shoal did not create the table."""
    try:
        return datetime.strptime(name, f"{table}_%Y_%m").replace(tzinfo=UTC)
    except ValueError:
        return None


def _name(table: str, month: datetime) -> str:
    return f"{table}_{month:%Y_%m}"


def _month_script(table: str, month: datetime) -> str:
    return load_script(PACKAGE, "month.sql").format(
        name=_name(table, month),
        table=table,
        time=PARTITIONED[table],
        begin=month.isoformat(),
        end=next_month(month).isoformat(),
    )
