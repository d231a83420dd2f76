"""Identities on SQLite: what the contract cannot see. Files of earlier versions, what indexes are
for, and what crawls without sessions do not pay."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from shoal.core.exit_policy import EXITS_SEEN, LANES_SEEN
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.sqlite.statements import SQL
from support.exits import LONG_S, exit_client, laned_pages, put_pool, settle
from support.frontiers import HOST, Backend, SqliteBackend, checked, pages
from support.older_files import WITHOUT_KINDS
from support.sessions import (
    ALICE,
    GROUP,
    SHOP,
    another_session_client,
    identity,
    logged_in,
    names_of,
    put_group,
    session_client,
    session_pages,
)

WITHOUT_ACCOUNTS = f"""
{WITHOUT_KINDS}
DROP TABLE accounts;
ALTER TABLE passages DROP COLUMN account;
ALTER TABLE passages DROP COLUMN expired;
UPDATE versions SET version = 7 WHERE part = 'frontier';
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


@pytest.fixture
async def backend(path: Path) -> AsyncIterator[Backend]:
    async with checked(SqliteBackend(path)) as backend:
        yield backend


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 35), reason="no DROP COLUMN")
async def test_an_older_file_goes_on_with_what_it_has_lent(backend: Backend, path: Path) -> None:
    client = exit_client(backend)
    await put_pool(client.frontier, 2)
    await client.begin(*laned_pages(9), *pages(1))
    held = await client.take(3)
    await backend.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WITHOUT_ACCOUNTS)
    await backend.reopen()
    worker = session_client(backend)
    await worker.good(*held)
    await worker.assert_free()
    await put_group(worker.frontier, ALICE)
    await worker.add(*session_pages(1))
    assert ALICE in names_of(await worker.take())


@pytest.mark.parametrize("query", ["free_accounts", "any_free_account"])
async def test_accounts_to_choose_from_are_found_by_an_index(
    backend: Backend, path: Path, query: str
) -> None:
    await backend.client().start(*pages(1))
    values = {"pool": GROUP, "worker": "w", "now": 1.0, "limit": 9}
    with closing(sqlite3.connect(path)) as connection:
        plan = str(connection.execute(f"EXPLAIN QUERY PLAN {SQL[query]}", values).fetchall())
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan, "nothing is sorted"


@pytest.mark.parametrize("query", ["ready_lanes_of_accounts", "next_lane_of_accounts"])
async def test_lanes_of_accounts_are_found_by_an_index(
    backend: Backend, path: Path, query: str
) -> None:
    await backend.client().start(*pages(1))
    whose = {"crawl_id": 1, "group": GROUP, "worker": "w"}
    values = {**whose, "now": 1.0, "crawl_now": 1.0, "limit": 9}
    with closing(sqlite3.connect(path)) as connection:
        plan = str(connection.execute(f"EXPLAIN QUERY PLAN {SQL[query]}", values).fetchall())
    assert "lanes_ready (crawl_id=? AND pool>? AND pool<?)" in plan
    assert "SCAN" not in plan


async def test_a_crawl_with_pools_only_does_nothing_for_accounts(backend: Backend) -> None:
    counted: Counter[str] = Counter()
    client = exit_client(backend)
    await put_pool(client.frontier, 2)
    await put_group(client.frontier, ALICE)
    await client.begin(*laned_pages(20))
    assert isinstance(backend.frontier, SqliteFrontier)
    await backend.frontier._db.run(
        lambda c: c.set_trace_callback(lambda sql: counted.update([sql]))
    )
    await client.good(*await client.take(5))
    await client.frontier.release(client.crawl, client.worker)
    about = [text for text in counted if "accounts" in text]
    assert sum(counted.values()) > 10
    assert about == []


async def test_accounts_that_another_worker_has_hide_no_others(backend: Backend) -> None:
    client, other = session_client(backend, slots=1000), another_session_client(backend)
    names = [f"user{number:04}" for number in range(EXITS_SEEN + 20)]
    await put_group(client.frontier, *names, concurrency=2)
    count = len(names)
    await client.begin(*session_pages(3 * count), concurrency_per_host=10_000)
    await client.log_in(*await client.take(count))
    await settle(backend)
    held = await client.take(count - 1)
    free = set(names) - set(names_of(held))
    found = set(names_of(await other.take(2)))
    assert found <= free


async def test_accounts_in_use_hide_no_lane(backend: Backend) -> None:
    """Very many wait for accounts that are in use; the one whose account is free comes to its
    turn."""
    client = session_client(backend, slots=1000)
    names = [f"user{number:04}" for number in range(LANES_SEEN + 20)]
    await put_group(client.frontier, *names, ALICE, timeout_s=LONG_S)
    await client.begin(
        *(
            logged_in(f"{HOST}/{name}/{number}", identity(name))
            for name in names
            for number in "ab"
        ),
        concurrency_per_host=10_000,
    )
    assert len(await client.take(1000)) == len(names)
    await client.add(logged_in(f"{HOST}/alice", identity(ALICE)))
    assert names_of(await client.take(1)) == [ALICE]
    assert len(await client.frontier.accounts(SHOP)) == len(names) + 1
