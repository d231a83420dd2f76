"""Suspects in lanes: they wait, starve and end like other tasks, but are leased alone."""

from __future__ import annotations

from shoal.frontier.values import Control, CrawlState
from support.exits import ExitClient, exit_client, exits_of, laned_pages, pass_time, put_pool
from support.frontiers import Backend
from support.sessions import (
    ALICE,
    FORUM_GROUP,
    SessionClient,
    another_session_client,
    names_of,
    put_group,
    session_client,
    session_pages,
)

TIMEOUT_S = 300.0
REST_S = 6.0
"""Longer than the rest of an account whose worker died."""


async def lose_all(backend: Backend, client: ExitClient) -> None:
    """Lease all tasks and lose them, twice."""
    for _ in range(2):
        assert await client.take()
        await client.frontier.release(client.crawl, client.worker)
        await backend.advance(REST_S)


async def assert_all_die_in_time(backend: Backend, client: ExitClient, count: int) -> None:
    """Check that `count` tasks die after the timeout without an exit, which ends the crawl."""
    await pass_time(backend, client, TIMEOUT_S / 2)
    assert (await client.stats()).dead == 0, "too early"
    await pass_time(backend, client, TIMEOUT_S)
    stats = await client.stats()
    assert (stats.dead, stats.state) == (count, CrawlState.FINISHED)


class TestSuspectsByExits:
    async def test_die_if_no_exit_comes(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, timeout_s=TIMEOUT_S)
        await client.begin(*laned_pages(2), max_losses=9)
        await client.control(Control.SEAL)
        await lose_all(backend, client)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await assert_all_die_in_time(backend, client, 2)

    async def test_may_leave_without_one(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, allow_direct=True)
        await client.begin(*laned_pages(1), max_losses=9)
        await lose_all(backend, client)
        await put_pool(client.frontier, 0, allow_direct=True)
        (suspect,) = await client.take()
        assert (suspect.alone, exits_of([suspect])) == (True, [""])
        await client.good(suspect)
        assert (await client.stats()).done == 1


class TestSuspectsWithAccounts:
    async def begin(self, backend: Backend, count: int = 1) -> SessionClient:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, timeout_s=TIMEOUT_S)
        await client.begin(*session_pages(count), concurrency_per_host=1)
        await client.control(Control.SEAL)
        await lose_all(backend, client)
        return client

    async def test_die_if_no_account_comes(self, backend: Backend) -> None:
        client = await self.begin(backend)
        await put_group(client.frontier, timeout_s=TIMEOUT_S)
        await assert_all_die_in_time(backend, client, 1)

    async def test_are_for_those_who_know_the_account(self, backend: Backend) -> None:
        client = await self.begin(backend)
        stranger = another_session_client(backend, pools=(FORUM_GROUP,))
        _, grant = await stranger.exchange(limit=9)
        assert grant.leases == []
        (suspect,) = await client.take()
        assert (suspect.alone, names_of([suspect])) == (True, [ALICE])
