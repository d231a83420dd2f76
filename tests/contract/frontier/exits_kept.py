"""Exits that are lent when workers die, crawls end, or the clock is set back."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import pytest

from shoal.core.exit_policy import COOL_FIRST_S, SWEEP_EVERY_S
from shoal.frontier.values import Control, CrawlState, Verdict
from support.exits import (
    DC,
    GOOD,
    HOURS,
    LONG_S,
    SECOND_HOST,
    ExitClient,
    another_client,
    exit_client,
    exit_id,
    exits_of,
    laned,
    laned_pages,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, Backend, outcome
from support.until import until

LEASE_S = 30.0
MANY_TASKS, MANY_HOSTS, MANY_EXITS = 10_000, 300, 500


async def begin(backend: Backend, **rules: object) -> tuple[ExitClient, ExitClient]:
    """A crawl that holds the only exit, and another crawl that waits for it."""
    client, other = exit_client(backend), another_client(backend, crawl="other")
    await put_pool(client.frontier, 1, concurrency=2, timeout_s=LONG_S, per_request=1.0)
    await client.begin(*laned_pages(2), lease_s=LEASE_S, **rules)
    await other.begin(*laned_pages(2, SECOND_HOST))
    assert len(await client.take()) == 2
    assert await other.take() == []
    await settle(backend)
    return client, other


class TestLentToTheDead:
    async def test_an_exit_is_free_when_the_leases_expire(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await backend.advance(LEASE_S + 1.0)
        await another_client(backend, pools=()).ask()
        await client.assert_free()
        assert len(await other.take()) == 2
        assert (await client.exit()).leased == 2

    @pytest.mark.parametrize("is_paused", [False, True])
    async def test_though_nobody_works_on_their_crawl(
        self, backend: Backend, is_paused: bool
    ) -> None:
        client, other = await begin(backend)
        if is_paused:
            await client.frontier.control(client.crawl, Control.PAUSE)
        await backend.advance(LEASE_S + SWEEP_EVERY_S)
        leases = await other.lease(2)
        await settle(backend)
        leases += await other.take(2 - len(leases))
        assert len(leases) == 2
        assert (await client.exit()).leased == 2, "its own, and no others"
        assert (await client.pool()).spent.leased == 2
        await client.frontier.release(client.crawl, client.worker)
        assert (await client.exit()).leased == 2, "they were taken back once"

    async def test_not_if_they_are_renewed(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend)
        await put_pool(client.frontier, 1, concurrency=1)
        await client.begin(*laned_pages(2), lease_s=LEASE_S)
        (lease,) = await client.take()
        for _ in range(3):
            await backend.advance(LEASE_S - 1.0)
            assert await client.renew(lease) == []
        assert await other.take() == []
        assert (await client.exit()).leased == 1

    async def test_when_the_worker_is_released(self, backend: Backend) -> None:
        client, other = await begin(backend)
        assert await client.frontier.release(client.crawl, client.worker) == 2
        await client.assert_free()
        assert len(await other.take()) == 2

    async def test_when_the_crawl_is_cancelled(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await client.control(Control.CANCEL)
        await client.assert_free()
        assert len(await other.take()) == 2
        assert (await client.stats()).dropped == 2

    async def test_when_the_crawl_is_cancelled_again(self, backend: Backend) -> None:
        """Exits that were lent to other crawls since then stay with these."""
        client, other = await begin(backend)
        await client.control(Control.CANCEL)
        assert len(await other.take()) == 2
        await client.control(Control.CANCEL)
        assert (await client.exit()).leased == 2
        assert await other.take() == []

    async def test_when_the_crawl_is_forgotten(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await client.frontier.forget(client.crawl)
        await client.assert_free()
        assert len(await other.take()) == 2

    async def test_when_the_crawl_is_started_over(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await client.frontier.forget(client.crawl)
        await client.begin(*laned_pages(2))
        assert len(await client.take()) == 2
        assert (await client.exit()).leased == 2
        assert await other.take() == []

    async def test_after_a_restart_too(self, backend: Backend) -> None:
        await begin(backend)
        await backend.reopen()
        client = exit_client(backend)
        assert (await client.exit()).leased == 2
        await backend.advance(LEASE_S + 1.0)
        assert len(await client.take()) == 2
        assert (await client.exit()).leased == 2

    @pytest.mark.parametrize("verdict", list(Verdict))
    async def test_when_a_try_ends_whatever_came_of_it(
        self, backend: Backend, verdict: Verdict
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(*laned_pages(6), lease_s=LEASE_S)
        ends: list[dict[str, Any]] = [{"sent": False}, {}, {"passage": GOOD}]
        leases = await client.take()
        await client.finish(*(outcome(at, verdict, **ends[n % 3]) for n, at in enumerate(leases)))
        await client.assert_free()

    async def test_a_dead_probe_is_followed_by_another(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(9), lease_s=LEASE_S, max_losses=9)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=LONG_S)
        await backend.advance(COOL_FIRST_S)
        assert len(await client.take()) == 1
        await backend.advance(LEASE_S + 1.0)
        assert len(await client.take()) == 1


class TestStaleByExits:
    async def test_a_lost_lease_changes_nothing(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, per_request=1.0)
        await client.begin(*laned_pages(5), max_losses=9)
        leases = await client.take(4)
        await backend.advance(A_MOMENT_S)
        await client.frontier.release(client.crawl, client.worker)
        held = await client.take(2)
        before = (await client.frontier.exits(DC), await client.frontier.pools())
        lanes = await client.frontier.lanes(client.crawl, 9)
        assert (
            await client.finish(
                outcome(leases[0], passage=GOOD, wire_bytes=7),
                outcome(leases[1], Verdict.RETRY, passage=GOOD),
                outcome(leases[2], Verdict.RETURNED, sent=False),
                outcome(leases[3], Verdict.DEAD),
            )
            == leases
        )
        assert (await client.frontier.exits(DC), await client.frontier.pools()) == before
        assert await client.frontier.lanes(client.crawl, 9) == lanes
        assert (await client.exit()).leased == len(held)

    async def test_a_lease_ends_once(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(5))
        first, *_ = await client.take(3)
        end = outcome(first, passage=GOOD)
        assert await client.finish(end, end) == [first]
        assert await client.finish(end) == [first]
        exit_ = await client.exit()
        assert (exit_.leased, exit_.requests) == (2, 1)

    async def test_of_a_cancelled_crawl_too(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(2))
        leases = await client.take()
        await client.control(Control.CANCEL)
        assert await client.finish(*(outcome(at, passage=GOOD) for at in leases)) == leases
        exit_ = await client.exit()
        assert (exit_.leased, exit_.requests) == (0, 0)


class TestClockOfExits:
    @pytest.mark.parametrize("jump_s", [-2 * HOURS, -1000 * HOURS])
    async def test_set_back_nothing_waits_longer(self, backend: Backend, jump_s: float) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 2, timeout_s=LONG_S, interval_s=60.0)
        await client.begin(*laned_pages(9))
        await other.begin(*laned_pages(9, SECOND_HOST))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=1.0)
        await client.faulty(await client.lease_one())
        await backend.advance(jump_s)
        for each in (client, other):
            assert await each.take() == [], "nor sooner"
        await backend.advance(62.0)
        assert len(await other.take()) == 2
        await backend.advance(62.0)
        assert exits_of(await client.take()) == [exit_id(1)]
        await backend.advance(COOL_FIRST_S)
        assert exits_of(await client.take(2)) == [exit_id(0), exit_id(1)]

    async def test_a_crawl_with_an_older_clock_heeds_what_the_other_has_done(
        self, backend: Backend
    ) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 1, interval_s=60.0)
        await client.begin(*laned_pages(9))
        await backend.advance(3 * HOURS)
        await client.good(await client.lease_one())
        await backend.advance(-3 * HOURS)
        await other.begin(*laned_pages(9, SECOND_HOST))
        assert await other.take() == []
        await backend.advance(62.0)
        assert len(await other.take()) == 1


class TestFleetOfExits:
    async def test_many_workers_lose_and_double_nothing(self, backend: Backend) -> None:
        """Some exits are blocked, some tries fail, some workers die: all tasks end, and no exit is
        lost."""
        fleet = [exit_client(backend), *(another_client(backend, f"w{n}") for n in range(3))]
        await put_pool(backend.frontier, 5, concurrency=2, timeout_s=LONG_S)
        entries = [laned(f"h{n % 3}.example/{n}") for n in range(45)]
        await fleet[0].begin(*entries, max_losses=99)
        await fleet[0].control(Control.SEAL)
        tries, done = Counter[bytes](), Counter[bytes]()

        async def work(client: ExitClient) -> bool:
            grant = await client.ask(3)
            for number, lease in enumerate(grant.leases):
                tries[lease.fingerprint] += 1
                assert (await client.exit(int(exits_of([lease])[0][3:], 16))).leased <= 2
                if tries[lease.fingerprint] > 1:
                    done[lease.fingerprint] += 1
                    await client.good(lease)
                elif number == 0:
                    await client.blocked(lease)
                elif number == 1:
                    await client.faulty(lease)
                else:
                    await client.frontier.release(client.crawl, client.worker)
                    break
            await backend.advance(10.0)
            return grant.state.over

        await asyncio.gather(*(until("the crawl's end", partial(work, each)) for each in fleet))
        assert set(done) == {each.fingerprint for each in entries}
        assert set(done.values()) == {1}
        stats = await fleet[0].stats()
        assert (stats.done, stats.state) == (45, CrawlState.FINISHED)
        await fleet[0].assert_free()
        requests = sum(each.requests for each in await fleet[0].frontier.exits(DC))
        assert requests == stats.sent

    @pytest.mark.rare
    async def test_very_many_tasks_hosts_and_exits(self, backend: Backend) -> None:
        client = exit_client(backend, slots=1000)
        await put_pool(client.frontier, MANY_EXITS, concurrency=1)
        entries = [laned(f"h{n % MANY_HOSTS}.example/{n}") for n in range(MANY_TASKS)]
        await client.begin(*entries, concurrency_per_host=4)
        await client.control(Control.SEAL)
        ended = 0
        for _ in range(1000):
            leases = await client.lease(400)
            busy = Counter(exits_of(leases))
            assert max(busy.values(), default=0) <= 1
            await client.finish(*(outcome(lease, passage=GOOD) for lease in leases))
            ended += len(leases)
            await settle(backend)
            if ended == MANY_TASKS:
                break
        stats = await client.stats()
        assert (stats.done, stats.state) == (MANY_TASKS, CrawlState.FINISHED)
        exits = await client.frontier.exits(DC)
        assert sum(each.requests for each in exits) == MANY_TASKS
        assert min(each.requests for each in exits) > 0
        await client.assert_free()
