"""Exits: the clocks of host, exit and pair, requests in flight, and which exit is next."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from shoal.core.policy import SEND_SLACK_S
from shoal.frontier.values import CrawlState
from support.exits import (
    DC,
    LONG_S,
    PLENTY,
    RES,
    SECOND_HOST,
    another_client,
    exit_client,
    exit_id,
    exits_of,
    give_back,
    laned,
    laned_pages,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend, pages

EXIT_S, PAIR_S = 0.25, 0.7
ROUNDING_S = 1e-4


def shortest(moments: list[float], apart: int = 1) -> float:
    """The shortest time between a grant and the one `apart` places later."""
    spans = [late - early for early, late in zip(moments, moments[apart:], strict=False)]
    return min(spans, default=LONG_S)


class TestThreeClocks:
    async def test_no_window_is_too_full(self, backend: Backend) -> None:
        """Four greedy workers in two crawls: no host, exit or pair is ever used faster than
        allowed, and all of them are made full use of."""
        fleet = [
            exit_client(backend),
            *(another_client(backend, f"w{n}", crawl=("crawl", "other")[n % 2]) for n in (1, 2, 3)),
        ]
        await put_pool(backend.frontier, 3, interval_s=EXIT_S, pair_interval_s=PAIR_S)
        for client in fleet[:2]:
            await client.begin(*laned_pages(60), *laned_pages(60, SECOND_HOST), rate="3/s")
        hosts, exits, pairs = (defaultdict[object, list[float]](list) for _ in range(3))
        for _ in range(150):
            for client in fleet:
                for lease in await client.lease(4):
                    at, by = (await client.record(lease)).due or 0.0, exits_of([lease])[0]
                    hosts[client.crawl, lease.task.site].append(at)
                    exits[by].append(at)
                    pairs[by, lease.task.site].append(at)
                    await client.good(lease)
            await backend.advance(0.02)
        assert (len(hosts), len(exits), len(pairs)) == (4, 3, 6)
        assert min(shortest(at, 3) for at in hosts.values()) >= 1.0 + SEND_SLACK_S - ROUNDING_S
        assert min(shortest(at) for at in exits.values()) >= EXIT_S - ROUNDING_S
        assert min(shortest(at) for at in pairs.values()) >= PAIR_S - ROUNDING_S
        # The six pairs are the tightest limit here.
        assert sum(map(len, pairs.values())) >= 0.7 * 6 * 3.0 / PAIR_S

    async def test_the_hosts_clock_is_over_all_exits_and_those_without(
        self, backend: Backend
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 9)
        await put_pool(client.frontier, 9, RES)
        await client.begin(*laned_pages(9), *laned_pages(9, pool=RES), *pages(9), rate="1/h")
        (lease,) = await client.take()
        assert lease.paced
        grant = await client.ask(9)
        assert grant.leases == []
        assert grant.wait_s == pytest.approx(3600.0, abs=1.0)

    async def test_a_turn_that_was_not_used_is_free_again(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(*laned_pages(9), rate="1/h")
        (lease,) = await client.take()
        await client.faulty(lease)
        await settle(backend)
        await client.lease_one()

    async def test_the_exits_clock_is_over_hosts_and_crawls(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 1, interval_s=60.0)
        await client.begin(*laned_pages(2), *laned_pages(2, SECOND_HOST))
        await other.begin(*laned_pages(2, "c.example"))
        await client.good(*await client.take())
        assert (await client.exit()).requests == 1
        for each in (client, other):
            assert await each.take() == []
        await backend.advance(60.0 + A_MOMENT_S)
        assert len(await other.take()) == 1
        assert await client.take() == []

    async def test_the_pairs_clock_holds_at_one_host(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 1, pair_interval_s=60.0)
        await client.begin(*laned_pages(2), *laned_pages(2, SECOND_HOST))
        await other.begin(*laned_pages(2))
        leases = await client.take()
        assert sorted(lease.task.site for lease in leases) == [HOST, SECOND_HOST]
        assert await other.take() == [], "whose crawl it is does not matter to the host"
        await client.good(*leases)
        await backend.advance(59.0)
        assert await client.take() == []
        await backend.advance(1.0 + A_MOMENT_S)
        assert len(await other.take()) == 1
        assert len(await client.take()) == 1

    @pytest.mark.parametrize("pace", [{}, {"interval_s": 1.0}, {"pair_interval_s": 1.0}])
    async def test_who_may_not_be_late_is_told_so(
        self, backend: Backend, pace: dict[str, float]
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, **pace)
        await client.begin(*laned_pages(9))
        assert (await client.lease_one()).paced == bool(pace)

    async def test_hold_after_a_restart(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, interval_s=60.0, pair_interval_s=100.0)
        await client.begin(*laned_pages(9), *laned_pages(9, SECOND_HOST))
        (lease,) = await client.take()
        await client.good(lease)
        await backend.reopen()
        client = exit_client(backend)
        assert await client.take() == []
        await backend.advance(60.0 + A_MOMENT_S)
        (another,) = await client.take()
        assert another.task.site != lease.task.site, "its pair has to wait"


class TestInFlight:
    async def test_by_one_exit_over_hosts_and_crawls(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 1, concurrency=3)
        await client.begin(*laned_pages(1), *laned_pages(1, SECOND_HOST))
        await other.begin(*laned_pages(9))
        first, _ = await client.take()
        assert len(await other.take()) == 1
        assert (await client.exit()).leased == 3
        grant = await other.ask()
        assert grant.wait_s is not None, "a request may end at any moment"
        await client.good(first)
        await settle(backend)
        assert len(await other.take()) == 1

    async def test_takes_room_at_the_host(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 9)
        await client.begin(*laned_pages(9), concurrency_per_host=2)
        leases = await client.take()
        assert len(leases) == 2
        await client.add(*pages(1))
        assert await client.take() == [], "nor for one without an exit"
        await client.good(leases[0])
        await settle(backend)
        assert len(await client.take()) == 1
        assert (await client.host()).leased == 2

    async def test_beside_those_without_an_exit(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 9)
        await client.begin(*pages(2), concurrency_per_host=2)
        (first, _) = await client.take()
        await client.add(*laned_pages(2))
        assert await client.take() == []
        await client.end(first)
        await settle(backend)
        assert exits_of(await client.take()) == [exit_id(0)]

    async def test_neither_those_with_exits_nor_those_without_wait_forever(
        self, backend: Backend
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 9)
        await client.begin(*laned_pages(60), *pages(60), concurrency_per_host=1)
        seen = list[bool]()
        for _ in range(30):
            lease = await client.lease_one()
            seen.append(lease.lent is not None)
            await client.good(lease)
            await settle(backend)
        assert 1 <= sum(seen) <= 29

    async def test_hosts_that_wait_for_one_exit_have_it_in_turn(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, concurrency=1)
        hosts = (HOST, SECOND_HOST, "c.example")
        await client.begin(*(each for host in hosts for each in laned_pages(20, host)))
        seen = Counter[str]()
        for _ in range(12):
            (lease,) = await client.take()
            seen[lease.task.site] += 1
            await client.good(lease)
            await settle(backend)
        assert seen == dict.fromkeys(hosts, 4)

    async def test_a_host_without_a_rate_and_with_exits_is_worked_off(
        self, backend: Backend
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2, concurrency=2)
        await client.begin(*laned_pages(30), concurrency_per_host=3)
        for _ in range(60):
            leases = await client.take()
            assert len(leases) <= 3
            await client.good(*leases)
            await settle(backend)
        stats = await client.stats()
        assert (stats.done, stats.state) == (30, CrawlState.RUNNING)
        assert sum(each.requests for each in await client.frontier.exits(DC)) == 30


class TestRotation:
    async def test_the_one_that_rested_longest_goes_first(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 3)
        await client.begin(*laned_pages(9), *laned_pages(9, SECOND_HOST))
        used = list[str]()
        for _ in range(7):
            lease = await client.lease_one()
            used += exits_of([lease])
            await backend.advance(A_MOMENT_S)
            await client.good(lease)
        assert used == [exit_id(n % 3) for n in range(7)]

    async def test_the_best_at_the_host_goes_first(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 3, rotation="best")
        await client.begin(*laned_pages(9), *laned_pages(1, SECOND_HOST, priority=9))
        while (lease := await client.lease_one()).task.site != SECOND_HOST:
            await client.good(lease)
        assert exits_of([lease]) == [exit_id(0)], "at first all are as good"
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=LONG_S)
        for _ in range(2):
            lease = await client.lease_one()
            assert exits_of([lease]) == [exit_id(1)], "what it does elsewhere says something"
            await backend.advance(A_MOMENT_S)
            await client.good(lease)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=LONG_S)
        assert exits_of(await client.take(1)) == [exit_id(2)]

    async def test_any_at_random(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 4, rotation="random", concurrency=PLENTY)
        await client.begin(*laned_pages(90))
        used = exits_of(await client.take(90))
        assert set(used) == {exit_id(n) for n in range(4)}
        assert used != [exit_id(n % 4) for n in range(90)]

    async def test_a_host_sticks_to_its_exit_for_a_time(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 3, sticky_s=600.0)
        await client.begin(*laned_pages(20))
        for _ in range(5):
            lease = await client.lease_one()
            assert exits_of([lease]) == [exit_id(0)]
            await backend.advance(100.0)
            await client.good(lease)
        await other.begin(*laned_pages(1, SECOND_HOST))
        assert exits_of(await other.take()) == [exit_id(1)], "another host has another"
        assert exits_of([await client.lease_one()]) == [exit_id(0)]
        await backend.advance(101.0)
        assert exits_of([await client.lease_one()]) == [exit_id(2)], "then it is another's turn"

    async def test_a_host_takes_another_while_its_own_is_busy(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2, sticky_s=600.0, concurrency=1)
        await client.begin(*laned_pages(9))
        first = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        second = await client.lease_one()
        assert exits_of([first, second]) == [exit_id(0), exit_id(1)]
        await give_back(client, [second, first])
        await settle(backend)
        assert exits_of([await client.lease_one()]) == [exit_id(0)], "the one it had for longest"

    async def test_an_exit_serves_a_task_that_comes_at_once(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin()
        assert await client.take() == []
        await client.add(laned(f"{HOST}/new"))
        assert len(await client.take()) == 1
