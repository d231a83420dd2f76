"""Exits on SQLite: what the contract cannot see. Files of earlier versions, what indexes are for,
what crawls without pools do not pay, pairs that are swept."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from shoal.core.exit_policy import PAIR_KEPT_S, SWEEP_EVERY_S
from shoal.frontier.sqlite import taking_back as module
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.values import Ask
from support.exits import DC, exit_client, exits_of, laned_pages, put_pool
from support.frontiers import Backend, SqliteBackend, checked, outcome, pages
from support.older_files import WITHOUT_KINDS

WITHOUT_EXITS = f"""
{WITHOUT_KINDS}
DROP TABLE accounts;
DROP TABLE jars;
DROP TABLE lanes;
DROP TABLE passages;
DROP TABLE pools;
DROP TABLE exits;
DROP TABLE pairs;
DROP TABLE exit_clock;
UPDATE versions SET version = 5 WHERE part = 'frontier';
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


@pytest.fixture
async def backend(path: Path) -> AsyncIterator[Backend]:
    async with checked(SqliteBackend(path)) as backend:
        yield backend


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


class TestOlderFileWithoutExits:
    async def test_goes_on_with_its_leases_and_gets_lanes(
        self, backend: Backend, path: Path
    ) -> None:
        client = exit_client(backend)
        await client.begin(*pages(5))
        held = await client.lease(2)
        await backend.close()
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(WITHOUT_EXITS)
        await backend.reopen()
        client = exit_client(backend)
        assert await client.finish(*map(outcome, held)) == []
        await put_pool(client.frontier, 2)
        await client.add(*laned_pages(2))
        assert len(await client.take()) == 5
        assert (await client.stats()).done == 2


class TestPlans:
    """However many there are, a look finds them by an index."""

    @pytest.mark.parametrize(
        ("query", "values", "index"),
        [
            ("ready_lanes", (1, DC, 1.0, 9), "lanes_ready (crawl_id=? AND pool=? AND ready_at<?)"),
            ("next_lane", (1, DC), "lanes_ready (crawl_id=? AND pool=?"),
            ("lane_tasks", (-1, 9), "tasks_ready (host_id=?)"),
            ("next_free", (DC,), "exits_free (pool=?"),
            ("sweep_pairs", (1.0, 9), "pairs_void (void_at<?)"),
        ],
    )
    async def test_of(
        self, backend: Backend, path: Path, query: str, values: tuple[object, ...], index: str
    ) -> None:
        await backend.client().start(*pages(1))
        with closing(sqlite3.connect(path)) as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL[query]}", values).fetchall()
        assert index in str(plan)
        assert "TEMP B-TREE" not in str(plan), "nothing is sorted"

    @pytest.mark.parametrize("query", ["rested", "sticking"])
    async def test_of_exits_to_choose_from(self, backend: Backend, path: Path, query: str) -> None:
        await backend.client().start(*pages(1))
        values = {"pool": DC, "host": "a", "now": 1.0, "limit": 9, "since": 0.5}
        with closing(sqlite3.connect(path)) as connection:
            plan = str(connection.execute(f"EXPLAIN QUERY PLAN {SQL[query]}", values).fetchall())
        assert "SCAN" not in plan
        assert "TEMP B-TREE" not in plan


async def statements(frontier: SqliteFrontier, counted: Counter[str]) -> None:
    """Count what the frontier has SQLite do from now on."""
    database = frontier._db
    await database.run(
        lambda c: c.set_trace_callback(lambda text: counted.update([" ".join(text.split()[:4])]))
    )


class TestWithoutPools:
    async def test_no_statement_is_about_exits(self, backend: Backend) -> None:
        counted: Counter[str] = Counter()
        client = backend.client()
        await client.start(*pages(20))
        assert isinstance(backend.frontier, SqliteFrontier)
        await statements(backend.frontier, counted)
        leases = await client.lease(5)
        _, grant = await client.exchange(*map(outcome, leases), limit=5)
        await client.finish(*map(outcome, grant.leases))
        assert sum(counted.values()) > 10
        about = [text for text in counted if any(n in text for n in ("lane", "exit", "pass"))]
        assert about == []


class TestSweeping:
    async def test_pairs_that_say_nothing_any_more_are_removed(
        self, backend: Backend, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "SWEPT_AT_ONCE", 2)
        client = exit_client(backend)
        await put_pool(client.frontier, 20)
        await client.begin(*laned_pages(19))
        await client.blocked(*await client.lease(3))
        assert len(rows(path, "SELECT * FROM pairs")) == 3
        await backend.advance(PAIR_KEPT_S)
        await client.lease_one()
        assert len(rows(path, "SELECT * FROM pairs")) == 3, "these cooled down after that"
        await backend.advance(7200.0)
        await client.lease_one()
        assert len(rows(path, "SELECT * FROM pairs")) == 1, "so many at a time"
        await backend.advance(SWEEP_EVERY_S)
        await client.lease_one()
        assert rows(path, "SELECT * FROM pairs") == []


class TestManyExits:
    async def test_those_that_cool_down_do_not_hide_the_others(self, backend: Backend) -> None:
        """However many rested exits a host has blocked, one that it has not is found."""
        client = exit_client(backend)
        await put_pool(client.frontier, 310)
        await client.begin(*laned_pages(320))
        # A few at a time: where most of the answers are blocks it would be the site.
        blocked = list[str]()
        for _ in range(50):
            leases = await client.take(6)
            blocked += exits_of(leases)
            await client.blocked(*leases, retry_in_s=1e6, retry_after_s=1e6)
            await backend.advance(61.0)
        assert len(set(blocked)) == 300
        (lease,) = await client.take(1)
        assert exits_of([lease])[0] not in blocked


class TestTwoClocks:
    async def test_each_crawl_has_its_own_and_exits_another(self, backend: Backend) -> None:
        """A crawl that has never seen the late moment waits by the clock of the exits."""
        client = exit_client(backend)
        await put_pool(client.frontier, 1, interval_s=10.0)
        await client.begin(*laned_pages(5))
        await client.good(await client.lease_one())
        await backend.advance(-5000.0)
        other = exit_client(backend, crawl="other")
        await other.begin(*laned_pages(5))
        grant = await other.frontier.lease("other", Ask("worker", 1, {}, (DC,), 1))
        assert grant.leases == []
        assert grant.wait_s == pytest.approx(10.0, abs=1.5)
        await backend.advance(11.5)
        await other.lease_one()
