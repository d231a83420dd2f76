"""What a PostgreSQL may do to its users: refuse, conflict, vanish, run out, move through months."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from contract.results_suite import (
    CRAWL,
    NOT_A_TEXT,
    all_items,
    all_rejected,
    readings,
    some_fingerprint,
    some_item,
    some_page,
    some_rejected,
    total,
)
from shoal.errors import ConfigError, StorageBusy, StorageFailed
from shoal.results.port import Batch, Keep
from shoal.results.postgres import PostgresResults
from shoal.results.postgres import store as postgres_store
from shoal.results.postgres.schema import make_months, next_month
from support.postgres_servers import QUICK, PostgresServer
from support.rarely import first_then_rare
from support.until import until

WRITERS, KEYS = 8, 500
TOO_LONG = "k" + "".join(f"{n:06}" for n in range(2_000))
"""More than an index takes, and not to be compressed."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(max_connections="30", **QUICK) as server:
        yield server


@pytest.fixture
async def results(server: PostgresServer) -> AsyncIterator[PostgresResults]:
    results = PostgresResults(server.new_database("troubles"))
    yield results
    await results.close()


# Refusals


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"key": TOO_LONG}, "index row"),
        ({"data": b'{"n":1e999999}'}, "overflow"),
        ({"data": b"not JSON"}, "invalid input syntax for type json"),
    ],
    ids=["key", "number", "data"],
)
async def test_what_the_database_does_not_take_is_rejected(
    results: PostgresResults, changes: dict[str, Any], reason: str
) -> None:
    good = [some_item(f"k{n}") for n in range(20)]
    odd: dict[str, Any] = {"key": "bad", "fingerprint": some_fingerprint(3), **changes}
    bad = some_item(**odd)
    batch = Batch([some_page()], [*good[:7], bad, *good[7:]], [some_rejected()])
    for _ in range(2):  # Again, as after a lost answer.
        await results.save(CRAWL, batch)
        assert await all_items(results) == good
        valid, rejected = await all_rejected(results)
        assert valid == some_rejected()
        assert rejected.reason.startswith("the database refuses it: ")
        assert reason in rejected.reason
        assert (rejected.kind, rejected.url, rejected.fingerprint) == (
            *(bad.kind, bad.url, bad.fingerprint),
        )
        assert await results.pages_of(CRAWL, some_fingerprint(1)) == [some_page()]


# Many at once


async def test_eight_writers_of_the_same_keys(server: PostgresServer) -> None:
    """Each has its own order, and some keys twice in a batch. The newest of each key stays, no
    reading that said something new is missing, and nobody sees a deadlock."""
    address = server.new_database("troubles")
    stores = [PostgresResults(address) for _ in range(WRITERS)]
    keys = [f"k{n}" for n in range(KEYS)]

    async def write(number: int, store: PostgresResults) -> None:
        own = keys[number * 61 :] + keys[: number * 61]
        own = own[::-1] if number % 2 else own
        for start in range(0, KEYS, 50):
            scrapes = [some_item(key, at=100.0 + number) for key in own[start : start + 50]]
            scrapes += [some_item(key, at=50.0 + number) for key in own[start : start + 10]]
            await store.save(CRAWL, Batch(items=scrapes))

    await asyncio.gather(*(write(number, store) for number, store in enumerate(stores)))
    items = await all_items(stores[0])
    assert sorted(item.key for item in items) == sorted(keys)
    assert {item.scraped_at for item in items} == {100.0 + WRITERS - 1}
    late = [key for key in keys if 50.0 in await readings(stores[0], key)]
    assert len(late) == KEYS // 5
    for key in keys[:20]:
        assert set(await readings(stores[0], key)) >= {100.0 + n for n in range(WRITERS)}
    assert "deadlock detected" not in server.log
    for store in stores:
        await store.close()


async def test_writers_that_meet_on_one_item_leave_it_alone(server: PostgresServer) -> None:
    address = server.new_database("troubles")
    stores = [PostgresResults(address) for _ in range(WRITERS)]
    keep = Keep(refresh_s=3600.0)
    batches = [Batch(items=[some_item(at=1e9 + n)], keep=keep) for n in range(WRITERS)]
    saves = [store.save(CRAWL, batch) for store, batch in zip(stores, batches, strict=True)]
    await asyncio.gather(*saves)
    (first,) = await readings(stores[0])
    for store, batch in zip(stores, batches, strict=True):
        await store.save(CRAWL, batch)
    assert [item.scraped_at for item in await all_items(stores[0])] == [first]
    for store in stores:
        await store.close()


async def test_a_deadlock_is_tried_again(server: PostgresServer, results: PostgresResults) -> None:
    """Somebody else's transaction locks our rows in the wrong order."""
    await results.save(CRAWL, Batch(items=[some_item("a"), some_item("b")]))
    other = await asyncpg.connect(server.url_of("troubles"))
    transaction = other.transaction()
    await transaction.start()
    await other.execute("SET LOCAL deadlock_timeout = '1h'")  # Let it be ours that is ended.
    await other.execute("SELECT 1 FROM items WHERE key = 'b' FOR UPDATE")
    newer = Batch(items=[some_item("a", at=2.0), some_item("b", at=2.0)])
    saving = asyncio.create_task(results.save(CRAWL, newer))
    await _until_somebody_waits(server)
    await other.execute("SELECT 1 FROM items WHERE key = 'a' FOR UPDATE")
    await transaction.rollback()
    await saving
    assert "deadlock detected" in server.log
    assert {item.scraped_at for item in await all_items(results)} == {2.0}
    await other.close()


async def _until_somebody_waits(server: PostgresServer) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await until("somebody who waits for a lock", lambda: server.execute(waiting)[0][0])


async def test_a_save_that_takes_too_long_is_ended_on_the_server_too(
    server: PostgresServer, results: PostgresResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each try would leave one more behind that waits for the same lock."""
    await results.save(CRAWL, Batch())
    monkeypatch.setattr(postgres_store, "ANSWER_S", 0.5)
    other = await asyncpg.connect(server.url_of("troubles"))
    transaction = other.transaction()
    await transaction.start()
    await other.execute("LOCK TABLE items")
    for _ in range(3):
        with pytest.raises(StorageBusy, match="no answer"):
            await results.save(CRAWL, Batch(items=[some_item()]))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    assert server.execute(waiting) == [(0,)]
    await transaction.rollback()
    await other.close()
    monkeypatch.undo()
    await results.save(CRAWL, Batch(items=[some_item()]))
    assert await total(results) == 1


async def test_a_huge_batch_is_many_statements_and_still_one_step(
    results: PostgresResults,
) -> None:
    items = [some_item(f"k{n}") for n in range(5_000)]
    broken = some_page(url=NOT_A_TEXT)
    with pytest.raises(StorageFailed):
        await results.save(CRAWL, Batch([broken], items))
    assert await total(results) == 0
    refused = some_item(TOO_LONG)
    await results.save(CRAWL, Batch([some_page()], [*items, refused]))
    assert await all_items(results) == items
    assert len(await all_rejected(results)) == 1


# Away and back


@pytest.mark.parametrize("how", first_then_rare("kill", "crash", "stop"))
async def test_a_server_that_restarts_is_busy_and_then_back(how: str) -> None:
    with PostgresServer() as server:
        results = PostgresResults(server.new_database("troubles"))
        await results.save(CRAWL, Batch(items=[some_item("first")]))
        getattr(server, how)()
        for _ in range(2):
            with pytest.raises(StorageBusy):
                await results.save(CRAWL, Batch(items=[some_item("second")]))
        server.start()
        await results.save(CRAWL, Batch(items=[some_item("second")]))
        assert [item.key for item in await all_items(results)] == ["first", "second"]
        await results.close()


async def test_a_server_without_free_connections_is_busy(server: PostgresServer) -> None:
    address = server.new_database("troubles")
    results = PostgresResults(address)
    others: list[PostgresResults] = []

    async def take_all() -> None:
        while True:
            others.append(PostgresResults(address))
            await others[-1].save(CRAWL, Batch())

    with pytest.raises(StorageBusy, match=r"too many clients|reserved"):
        await take_all()
    with pytest.raises(StorageBusy):
        await results.save(CRAWL, Batch(items=[some_item()]))
    for other in others:
        await other.close()
    await results.save(CRAWL, Batch(items=[some_item()]))
    assert await total(results) == 1
    await results.close()


async def test_a_server_that_may_only_be_read_is_busy(
    server: PostgresServer, results: PostgresResults
) -> None:
    """As after a failover: our connection leads to what is now a standby."""
    await results.save(CRAWL, Batch())
    read_only = "ALTER DATABASE troubles SET default_transaction_read_only = {}"
    server.execute(read_only.format("on"))
    own = PostgresResults(server.url_of("troubles"))
    with pytest.raises(StorageBusy, match="read-only"):
        await own.save(CRAWL, Batch(items=[some_item()]))
    server.execute(read_only.format("off"))
    await own.save(CRAWL, Batch(items=[some_item()]))
    await own.close()


async def test_a_save_that_is_cancelled_spoils_nothing(
    server: PostgresServer, results: PostgresResults
) -> None:
    await results.save(CRAWL, Batch(items=[some_item()]))
    other = await asyncpg.connect(server.url_of("troubles"))
    transaction = other.transaction()
    await transaction.start()
    await other.execute("LOCK TABLE items")
    saving = asyncio.create_task(results.save(CRAWL, Batch(items=[some_item(at=2.0)])))
    await _until_somebody_waits(server)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await transaction.rollback()
    await other.close()
    await results.save(CRAWL, Batch(items=[some_item(at=3.0)]))
    assert [item.scraped_at for item in await all_items(results)] == [3.0]


# Months


def tables(server: PostgresServer) -> list[str]:
    like = "'^(pages|observations)_[0-9]'"
    query = f"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ {like} ORDER BY 1"
    return [name for (name,) in server.execute(query, database="troubles")]


async def test_months_are_made_ahead(server: PostgresServer, results: PostgresResults) -> None:
    await results.check()
    assert tables(server) == []
    await results.save(CRAWL, Batch())
    month = datetime.now(UTC).replace(day=1)
    names = []
    for _ in range(3):
        names.append(f"{month:%Y_%m}")
        month = next_month(month)
    expected = [f"{table}_{name}" for table in ("observations", "pages") for name in names]
    assert tables(server) == expected


async def test_a_month_takes_its_rows_from_the_default_table(
    server: PostgresServer, results: PostgresResults
) -> None:
    """As when nobody who may make tables has been here for a while."""
    march = datetime(2001, 3, 15, tzinfo=UTC)
    batch = Batch([some_page(started_at=march.timestamp())], [some_item(at=march.timestamp())])
    await results.save(CRAWL, batch)
    connection = await asyncpg.connect(server.url_of("troubles"))
    await make_months(connection, "here", march)
    for table in ("observations", "pages"):
        assert await connection.fetchval(f"SELECT count(*) FROM {table}_2001_03") == 1
        assert await connection.fetchval(f"SELECT count(*) FROM {table}_default") == 0
    await connection.close()
    assert await readings(results) == [march.timestamp()]
    await results.save(CRAWL, batch)
    assert await results.pages_of(CRAWL, some_fingerprint(1)) == batch.pages


@pytest.mark.rare
async def test_months_are_made_while_others_write(
    server: PostgresServer, results: PostgresResults
) -> None:
    """Their rows go to the default table until then, and none is lost."""
    march = datetime(2001, 3, 15, tzinfo=UTC).timestamp()
    await results.save(CRAWL, Batch())
    writers = [PostgresResults(server.url_of("troubles")) for _ in range(3)]
    is_made = asyncio.Event()
    saved = [0] * len(writers)

    async def write(number: int) -> None:
        while not is_made.is_set() or saved[number] < 10:
            at = march + saved[number]
            fingerprint = some_fingerprint(number)
            pages = [some_page(started_at=at, fingerprint=fingerprint)]
            items = [some_item(f"w{number}-{saved[number]}", at=at)]
            await writers[number].save(CRAWL, Batch(pages, items))
            saved[number] += 1

    async def make() -> None:
        connection = await asyncpg.connect(server.url_of("troubles"))
        while not tables(server)[0].endswith("2001_03"):
            await make_months(connection, "here", datetime.fromtimestamp(march, UTC))
        await connection.close()
        is_made.set()

    await asyncio.gather(make(), *(write(number) for number in range(len(writers))))
    for table in ("pages", "observations"):
        rows = server.execute(f"SELECT count(*) FROM {table}_2001_03", database="troubles")
        assert rows == [(sum(saved),)]
    for writer in writers:
        await writer.close()


@pytest.mark.rare
async def test_pruning_does_not_make_writers_wait_for_readers(
    server: PostgresServer, results: PostgresResults
) -> None:
    march = datetime(2001, 3, 15, tzinfo=UTC)
    await results.save(CRAWL, Batch())
    reader = await asyncpg.connect(server.url_of("troubles"))
    await make_months(reader, "here", march)
    reading = reader.transaction()
    await reading.start()
    await reader.fetch("SELECT count(*) FROM pages")
    pruner = PostgresResults(server.url_of("troubles"))
    pruning = asyncio.create_task(pruner.prune(datetime(2002, 1, 1, tzinfo=UTC).timestamp()))
    await _until_somebody_waits(server)
    for number in range(3):  # Behind the one that waits, and then it has given up for a while.
        await results.save(CRAWL, Batch([some_page(attempt=number)]))
    assert not pruning.done()
    await reading.rollback()
    await reader.close()
    assert len((await pruning).tables) == 6
    await pruner.close()


@pytest.mark.parametrize("detach", [False, True])
async def test_whole_months_go(
    server: PostgresServer, results: PostgresResults, detach: bool
) -> None:
    march = datetime(2001, 3, 15, tzinfo=UTC)
    await results.check()
    connection = await asyncpg.connect(server.url_of("troubles"))
    await make_months(connection, "here", march)
    for at in (march, datetime(2001, 4, 2, tzinfo=UTC)):
        moment = at.timestamp()
        await results.save(CRAWL, Batch([some_page(started_at=moment)], [some_item(at=moment)]))
    before = datetime(2001, 4, 20, tzinfo=UTC).timestamp()  # April is not over.
    would_go = await results.prune(before, dry_run=True)
    gone = await results.prune(before, detach=detach)
    assert gone == would_go
    assert gone.tables == ["observations_2001_03", "pages_2001_03"]
    assert (gone.observations, gone.pages) == (1, 1)
    assert ("pages_2001_03" in tables(server)) is detach
    if detach:
        assert await connection.fetchval("SELECT count(*) FROM pages_2001_03") == 1
    assert len(await readings(results)) == 1
    assert await results.prune(before) == type(gone)()
    await connection.close()


@pytest.mark.rare
async def test_a_role_that_may_not_drop_is_told(
    server: PostgresServer, results: PostgresResults
) -> None:
    march = datetime(2001, 3, 15, tzinfo=UTC)
    await results.check()
    connection = await asyncpg.connect(server.url_of("troubles"))
    await make_months(connection, "here", march)
    await connection.execute("CREATE ROLE reader LOGIN")
    await connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    reader = PostgresResults(server.url_of("troubles", "reader"))
    with pytest.raises(ConfigError, match="permission denied"):
        await reader.prune(datetime(2002, 1, 1, tzinfo=UTC).timestamp())
    await reader.close()
    await connection.execute("DROP OWNED BY reader")
    await connection.execute("DROP ROLE reader")
    await connection.close()
