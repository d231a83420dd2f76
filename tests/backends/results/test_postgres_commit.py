"""When a commit counts is the server's to say: a standby that it waits for, we wait for too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from contract.results_suite import CRAWL, all_items, some_item
from shoal.results.port import Batch
from shoal.results.postgres import PostgresResults
from support.postgres_servers import QUICK, PostgresServer
from support.until import until

NAME = "commit"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK | {"synchronous_commit": "on"}) as server:
        yield server


@pytest.fixture
async def results(server: PostgresServer) -> AsyncIterator[PostgresResults]:
    results = PostgresResults(server.new_database(NAME))
    yield results
    await results.close()


def set_standbys(server: PostgresServer, names: str) -> None:
    server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    server.execute("SELECT pg_reload_conf()")


async def test_a_page_is_not_done_before_the_standby_has_it(
    server: PostgresServer, results: PostgresResults
) -> None:
    await results.save(CRAWL, Batch(items=[some_item("first")]))
    set_standbys(server, "nobody")
    waiting = (
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'shoal' AND wait_event = 'SyncRep'"
    )
    try:
        saving = asyncio.create_task(results.save(CRAWL, Batch(items=[some_item("second")])))
        await until("a commit that waits for its standby", lambda: server.execute(waiting))
        assert not saving.done()
    finally:
        set_standbys(server, "")
    await saving
    assert {item.key for item in await all_items(results)} == {"first", "second"}


@pytest.mark.parametrize("value", ["off", "local", "on", "remote_apply"])
async def test_our_sessions_take_it_as_they_find_it(server: PostgresServer, value: str) -> None:
    address = server.new_database(NAME)
    server.execute(f"ALTER DATABASE {NAME} SET synchronous_commit = {value}")
    results = PostgresResults(address)
    await results.save(CRAWL, Batch(items=[some_item("first")]))
    ours = await results._link.run(lambda session: session.fetchval("SHOW synchronous_commit"))
    assert ours == value
    await results.close()
