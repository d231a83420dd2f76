"""The SQLite frontier: the contract, and what a fake clock and a look at the lock can show."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from contract.frontier_suite import *  # noqa: F403
from shoal.core.cookies import Cookie, Jar
from shoal.core.failures import FailureKind
from shoal.errors import ConfigError, StorageBusy, StorageFailed
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.values import Ask, DeadFilter, Verdict
from support.frontiers import (
    CRAWL,
    HOST,
    Backend,
    Client,
    SqliteBackend,
    checked,
    entry,
    outcome,
    pages,
)
from support.older_files import WITHOUT_KINDS
from support.sharers import SharingClient


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


@pytest.fixture
async def backend(path: Path) -> AsyncIterator[Backend]:
    async with checked(SqliteBackend(path)) as backend:
        yield backend


def is_locked(path: Path) -> bool:
    """Whether somebody is in the middle of writing."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


async def test_what_is_purged_keeps_no_cookies(path: Path) -> None:
    canary = "canary-4711"
    client = Client(SqliteFrontier(path), "worker", CRAWL)
    jar = Jar((Cookie(name="sid", value=canary, domain=HOST),))
    page = entry(f"{HOST}/x", cookies=jar, meta={"a": ["ü", 1.5]})
    await client.start(page, cookies="visit")
    await client.end(await client.lease_one(), Verdict.DEAD)
    assert canary in kept_tasks(path), "what is dead may be retried"
    assert await client.frontier.purge_dead(CRAWL) == 1
    assert canary not in kept_tasks(path)
    assert (await client.record(page)).task.meta == {"a": ["ü", 1.5]}
    await client.frontier.close()


def kept_tasks(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return repr(connection.execute("SELECT task FROM tasks").fetchall())


class TestClock:
    async def test_is_read_while_nobody_else_can_write(self, path: Path) -> None:
        """Else a lease that waited for the lock would reserve its slot from too early a moment."""
        locked: list[bool] = []

        def clock() -> float:
            locked.append(is_locked(path))
            return 1_700_000_000.0

        client = Client(SqliteFrontier(path, clock=clock), "worker", CRAWL)
        await client.start(*pages(2), rate="1/s")
        for lease in await client.lease(9):
            assert locked[-1]
            await client.renew(lease)
            assert locked[-1]
            await client.finish(outcome(lease))
            assert locked[-1]
        await client.frontier.close()

    async def test_pages_per_second_are_those_of_the_last_seconds(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(500))
        for every_s, seconds in ((1.0, 100), (0.1, 30)):
            for _ in range(int(seconds / every_s)):
                await backend.advance(every_s)
                await client.end(await client.lease_one())
            assert (await client.stats()).pages_per_s == pytest.approx(1 / every_s, rel=0.15)
        await backend.advance(600.0)
        assert (await client.stats()).pages_per_s < 1.0


class TestHolding:
    async def test_whether_a_worker_holds_anything_is_a_look_into_an_index(
        self, backend: Backend, path: Path
    ) -> None:
        """Who has nothing to do asks for it all the time, however many retries wait."""
        await backend.client().start(*pages(1))
        with closing(sqlite3.connect(path)) as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL['holds_any']}", (1, "w")).fetchall()
        assert "tasks_held (crawl_id=? AND worker=?)" in str(plan)


class TestSeen:
    """A file is exact and forgets nothing: what it cannot do, it says at the start."""

    @pytest.mark.parametrize(
        ("rules", "named"),
        [({"seen": "bloom"}, "seen = 'bloom'"), ({"seen_for": "7d"}, "seen_for")],
    )
    async def test_what_needs_redis(
        self, backend: Backend, rules: dict[str, str], named: str
    ) -> None:
        with pytest.raises(ConfigError, match=f"{named} needs a redis:// frontier"):
            await backend.client().start(**rules)
        assert await backend.frontier.crawls() == []

    async def test_auto_is_exact(self, backend: Backend) -> None:
        stats = await backend.client().start(*pages(2), seen="auto")
        assert not stats.bloom


WITHOUT_SHARES = f"""
{WITHOUT_KINDS}
DROP TABLE accounts;
DROP TABLE jars;
DROP TABLE lanes;
DROP TABLE passages;
DROP TABLE pools;
DROP TABLE exits;
DROP TABLE pairs;
DROP TABLE exit_clock;
ALTER TABLE hosts DROP COLUMN shared;
ALTER TABLE hosts DROP COLUMN sharers;
ALTER TABLE tasks DROP COLUMN shared;
DROP TABLE shares;
UPDATE versions SET version = 4 WHERE part = 'frontier';
"""


class TestOlderFile:
    @pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 35), reason="no DROP COLUMN")
    async def test_that_knew_no_kinds_has_dead_tasks_of_other_kinds(
        self, backend: Backend, path: Path
    ) -> None:
        client = backend.client()
        await client.start(*pages(3), concurrency_per_host=3)
        first, second, held = await client.lease(3)
        await client.finish(*(outcome(lease, Verdict.DEAD) for lease in (first, second)))
        await backend.advance(1.0)
        await backend.close()
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(WITHOUT_KINDS)
        await backend.reopen()
        client = backend.client()
        assert (await client.stats()).failures_by_kind == {}
        await client.end(held, Verdict.DEAD, kind=FailureKind.TLS)
        listed = await client.frontier.dead(CRAWL, 9)
        assert [dead.kind for dead in listed] == [FailureKind.TLS] + [FailureKind.OTHER] * 2
        moments = [backend.clock.now, *[backend.clock.now - 1.0] * 2]
        assert [dead.died_at for dead in listed] == moments, "of older ones, of the last try"
        older = DeadFilter(kind=FailureKind.OTHER)
        assert await client.frontier.retry_dead(CRAWL, older, dry_run=True) == 2
        assert await client.frontier.retry_dead(CRAWL, older) == 2
        assert (await client.stats()).failures_by_kind == {FailureKind.TLS: 1}

    async def test_a_kind_of_a_later_version_is_another(self, backend: Backend, path: Path) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.end(await client.lease_one(), Verdict.DEAD, kind=FailureKind.TLS)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(
                "UPDATE tasks SET kind = 'quantum'; UPDATE failures SET kind = 'quantum'"
            )
        assert (await client.stats()).failures_by_kind == {FailureKind.OTHER: 1}
        assert (await client.host()).failures_by_kind == {FailureKind.OTHER: 1}
        other = DeadFilter(kind=FailureKind.OTHER)
        (dead,) = await client.frontier.dead(CRAWL, 9, None, other)
        assert dead.kind is FailureKind.OTHER
        assert await client.frontier.purge_dead(CRAWL, other) == 1

    @pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 35), reason="no DROP COLUMN")
    async def test_that_knew_no_shares_goes_on_with_its_leases(
        self, backend: Backend, path: Path
    ) -> None:
        client = backend.client()
        await client.start(*pages(40), concurrency_per_host=4, lease_s=30.0)
        held = await client.lease(3)
        await backend.close()
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(WITHOUT_SHARES)
        await backend.reopen()
        worker = SharingClient(backend.another())
        assert (await worker.ask()).shares == {HOST: 1}, "what is in flight counts"
        await worker.client.finish(*map(outcome, held[:2]))
        assert (await worker.ask()).shares == {HOST: 3}
        await backend.advance(31.0)
        grant = await worker.ask()
        assert grant.shares == {HOST: 4}
        assert await worker.client.finish(outcome(held[2])) == [held[2]], "it has expired"


class TestFile:
    async def test_garbage(self, path: Path) -> None:
        path.write_bytes(b"this is no database at all\n" * 1000)
        frontier = SqliteFrontier(path)
        for _ in range(2):
            with pytest.raises(StorageFailed, match=r"frontier\.db"):
                await frontier.add(CRAWL, pages(1))
        await frontier.close()

    async def test_damaged(self, path: Path) -> None:
        backend = SqliteBackend(path)
        await backend.client().start(*pages(100))
        await backend.close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (path.stat().st_size - 4096))
        frontier = backend.open_another()
        with pytest.raises(StorageFailed, match=r"frontier\.db"):
            await frontier.lease(CRAWL, Ask("worker", 1))
        await backend.close()

    async def test_a_folder(self, tmp_path: Path) -> None:
        frontier = SqliteFrontier(tmp_path)
        with pytest.raises(StorageFailed, match=tmp_path.name):
            await frontier.crawls()
        await frontier.close()

    async def test_in_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        frontier = SqliteFrontier(tmp_path / "missing" / "frontier.db")
        with pytest.raises(ConfigError, match="missing"):
            await frontier.crawls()
        await frontier.close()

    async def test_locked_for_too_long(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shoal.drivers.sqlite.BUSY_TIMEOUT_S", 0.05)
        async with checked(SqliteBackend(path)) as backend:
            client = backend.client()
            await client.start(*pages(2))
            lease = await client.lease_one()
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(StorageBusy, match=r"frontier\.db"):
                    await client.end(lease)
                assert (await client.stats()).leased == 1, "reading goes on"
                other.execute("ROLLBACK")
            await client.end(lease)
