"""Getting into a PostgreSQL: addresses, passwords, rights, versions of the schema."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from contract.results_suite import CRAWL, all_items, some_item, some_page
from shoal.errors import ConfigError, StorageBusy
from shoal.results import open_results
from shoal.results.port import Batch, Results
from shoal.results.postgres.schema import VERSIONS, schema_text
from support.postgres_servers import QUICK, PgBouncer, PostgresServer
from support.server_process import free_port

BATCH = Batch([some_page()], [some_item()])
SECRET = "s3cret/@:?"
QUOTED = "s3cret%2F%40%3A%3F"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK) as server:
        yield server


@pytest.fixture
def empty(server: PostgresServer) -> str:
    return server.new_database("access")


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Results]:
    results = open_results(address)
    try:
        yield results
    finally:
        await results.close()


async def saved(address: str) -> None:
    async with opened(address) as results:
        await results.save(CRAWL, BATCH)
        assert await all_items(results) == BATCH.items


async def refusal(address: str) -> str:
    """The one line with which a store is refused."""
    with pytest.raises(ConfigError) as caught:
        await saved(address)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert QUOTED not in message
    return message


# Addresses and passwords


async def test_a_password_is_used_and_not_shown() -> None:
    with PostgresServer(password=SECRET, **QUICK) as server:
        assert QUOTED in server.url
        await saved(server.url)
        wrong = server.url.replace(QUOTED, QUOTED + "x")
        assert 'password authentication failed for user "test"' in await refusal(wrong)


async def test_a_database_that_does_not_exist_is_named(server: PostgresServer) -> None:
    assert 'database "nowhere" does not exist' in await refusal(server.url_of("nowhere"))


async def test_a_user_that_does_not_exist_is_named(server: PostgresServer) -> None:
    address = server.url_of("postgres", user="nobody")
    assert 'role "nobody" does not exist' in await refusal(address)


async def test_an_option_that_does_not_exist_is_named(empty: str) -> None:
    assert '"colour"' in await refusal(f"{empty}?colour=blue")
    assert "prepared is yes or no" in await refusal(f"{empty}?prepared=maybe")
    assert "`sslmode` parameter must be one of" in await refusal(f"{empty}?sslmode=perhaps")


@pytest.mark.parametrize("address", [f"postgresql://me:{SECRET}@host/db", "postgresql://h:port/db"])
async def test_what_is_no_address_is_refused(address: str) -> None:
    assert "not a PostgreSQL address" in await refusal(address)


async def test_a_server_that_is_not_there_may_come() -> None:
    with pytest.raises(StorageBusy, match="onnect"):
        await saved(f"postgresql://test@127.0.0.1:{free_port()}/postgres")


async def test_but_a_check_takes_it_for_a_wrong_address() -> None:
    async with opened(f"postgresql://me:{QUOTED}@127.0.0.1:{free_port()}/db") as results:
        with pytest.raises(ConfigError, match="cannot be reached") as caught:
            await results.check()
    assert QUOTED not in str(caught.value)


async def test_a_schema_of_ones_own(server: PostgresServer, empty: str) -> None:
    server.execute("CREATE SCHEMA crawling", database="access")
    await saved(f"{empty}?search_path=crawling")
    assert server.execute("SELECT count(*) FROM crawling.items", database="access") == [(1,)]


def test_the_extra_is_named() -> None:
    """In a process of its own: modules that are loaded anew here would be others'."""
    code = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from shoal.results import open_results; open_results('postgresql://host/db')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtra: postgresql:// results needs an extra" in done.stderr
    assert "shoal[postgres]" in done.stderr


# Rights


async def test_a_role_without_rights_is_told_what_to_do(server: PostgresServer, empty: str) -> None:
    server.execute("DROP ROLE IF EXISTS writer", "CREATE ROLE writer LOGIN")
    message = await refusal(server.url_of("access", "writer"))
    assert "permission denied for schema public" in message
    assert "`shoal results schema --from-version 0`" in message


async def test_a_role_may_write_what_others_have_made(server: PostgresServer, empty: str) -> None:
    """It cannot make the next months' tables either: the default table takes their rows."""
    make = schema_text(0, datetime(2020, 1, 1, tzinfo=UTC))
    server.script(make, database="access")
    server.execute(
        "DROP ROLE IF EXISTS writer",
        "CREATE ROLE writer LOGIN",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer",
        "GRANT USAGE ON SEQUENCE items_id TO writer",
        database="access",
    )
    await saved(server.url_of("access", "writer"))
    assert server.execute("SELECT count(*) FROM pages_default", database="access") == [(1,)]
    server.execute("DROP OWNED BY writer", "DROP ROLE writer", database="access")


# Versions


async def test_a_newer_schema_is_left_alone(server: PostgresServer, empty: str) -> None:
    await saved(empty)
    server.execute("INSERT INTO shoal_versions VALUES (99)", database="access")
    message = await refusal(empty)
    assert "written by a newer shoal (version 99 of its tables" in message
    assert "upgrade shoal" in message


async def test_the_first_version_is_brought_up_to_date(server: PostgresServer, empty: str) -> None:
    """Its rows stay, and eight come at once to do it."""
    server.script(
        "CREATE TABLE shoal_versions (version integer PRIMARY KEY, made_at timestamptz);"
        f"{VERSIONS[0]};"
        "INSERT INTO shoal_versions VALUES (1);"
        "INSERT INTO crawls VALUES ('shop', 'redis://one');"
        "INSERT INTO pages VALUES ('shop', 7, 'epoch', 1, 'w', 0, 'done', 200, 0, 0, 0, 'u',"
        " NULL, '', '');",
        database="access",
    )
    await asyncio.gather(*(saved(empty) for _ in range(8)))
    versions = server.execute("SELECT version FROM shoal_versions ORDER BY 1", database="access")
    assert versions == [(number,) for number in range(1, len(VERSIONS) + 1)]
    async with opened(empty) as results:
        (page,) = await results.pages_of(CRAWL, (7).to_bytes(8))
        assert (page.url, page.simhash, page.archived) == ("u", None, "")
        note = await results.note_of(CRAWL)
    assert note is not None
    assert (note.frontier, note.targets) == ("redis://one", [])


async def test_an_earlier_version_is_brought_up_to_date(server: PostgresServer, empty: str) -> None:
    """By what is printed for its owner, too. Tables of months have what is new as well."""
    await saved(empty)
    server.execute(
        "DROP INDEX items_gone",
        "ALTER TABLE items DROP COLUMN gone_at",
        "ALTER TABLE pages DROP COLUMN etag, DROP COLUMN last_modified",
        "ALTER TABLE pages DROP COLUMN exit, DROP COLUMN block",
        "ALTER TABLE crawls DROP COLUMN previous, DROP COLUMN file_store",
        "DROP TABLE files",
        "DELETE FROM shoal_versions WHERE version > 2",
        database="access",
    )
    server.script(schema_text(2, datetime.now(UTC)), database="access")
    page = some_page(started_at=datetime.now(UTC).timestamp(), status=200, etag='"1"')
    async with opened(empty) as results:
        assert [item.gone_at for item in await all_items(results)] == [None]
        await results.save(CRAWL, Batch(pages=[page]))
        known = await results.known_pages(CRAWL, [page.fingerprint])
        assert known[page.fingerprint].etag == '"1"'
        assert await results.mark_gone("tuesday", CRAWL, 9.0) == 1


async def test_what_is_printed_is_what_is_made(server: PostgresServer) -> None:
    columns = """
        SELECT table_name, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
    """
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    await saved(server.new_database("made"))
    server.new_database("printed")
    server.script(schema_text(0, datetime.now(UTC)), database="printed")
    for question in (columns, indexes):
        made = server.execute(question, database="made")
        assert made == server.execute(question, database="printed")
    await saved(server.url_of("printed"))


# In between


async def test_a_name_that_is_taken_is_one_line(server: PostgresServer, empty: str) -> None:
    server.execute("CREATE TABLE items (a int)", database="access")
    message = await refusal(empty)
    assert 'relation "items" already exists' in message
    assert "search_path" in message


async def test_who_only_reads_needs_no_rights(server: PostgresServer, empty: str) -> None:
    """Nor does it make tables: the next months are the writers' business."""
    await saved(empty)
    server.execute("DROP TABLE pages_default CASCADE", database="access")
    months = "SELECT relname FROM pg_class WHERE relname LIKE 'pages_2%' AND relkind = 'r'"
    for (name,) in server.execute(months, database="access"):
        server.execute(f"DROP TABLE {name}", database="access")
    server.execute("ALTER DATABASE access SET default_transaction_read_only = on")
    async with opened(empty) as results:
        await results.check()
        assert await all_items(results) == BATCH.items


async def test_behind_pgbouncer_without_saying_so(server: PostgresServer, empty: str) -> None:
    with PgBouncer(server) as bouncer:
        address = bouncer.url_of("access")
        told = await asyncio.gather(*(saved(address) for _ in range(8)), return_exceptions=True)
    refused = [error for error in told if isinstance(error, ConfigError)]
    assert all("prepared=no" in str(error) for error in refused)
    assert len(refused) == sum(error is not None for error in told)


async def test_behind_pgbouncer(server: PostgresServer, empty: str) -> None:
    """Each transaction may meet another connection, which knows none of our statements."""
    with PgBouncer(server) as bouncer:
        address = f"{bouncer.url_of('access')}?prepared=no"
        await asyncio.gather(*(saved(address) for _ in range(4)))
        for _ in range(3):
            await saved(address)
