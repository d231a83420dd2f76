"""Exits: pools and what is known of them, tasks in lanes, and what a worker asks for."""

from __future__ import annotations

import pytest

from shoal.core.exits import ExitEntry, PoolRules
from shoal.frontier.values import Control, CrawlState, TaskState, Verdict
from support.exits import (
    DC,
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
    urls_of,
)
from support.frontiers import A_MOMENT_S, ALLOW_ALL, HOST, Backend, entry, outcome, pages


class TestPools:
    async def test_are_as_they_were_put(self, backend: Backend) -> None:
        frontier = backend.frontier
        rules = PoolRules(
            name=RES, rotation="best", sticky_s=600.0, concurrency=3, per_gb=8.0, budget=20.0
        )
        await frontier.put_pool(
            rules, [ExitEntry("res-b", "residential", "de"), ExitEntry("res-a")]
        )
        await put_pool(frontier, 3)
        dc, res = await frontier.pools()
        assert (dc.rules, res.rules) == (PoolRules(name=DC), rules)
        assert (res.exits, res.ready, res.cooling, res.out) == (2, 2, 0, 0)
        first, second = await frontier.exits(RES)
        assert (first.id, first.kind, first.country, first.pool) == ("res-a", "", "", RES)
        assert (second.id, second.kind, second.country) == ("res-b", "residential", "de")
        assert [each.id for each in await frontier.exits(DC)] == [exit_id(n) for n in range(3)]

    async def test_there_are_none_at_first(self, backend: Backend) -> None:
        assert await backend.frontier.pools() == []
        assert await backend.frontier.exits(DC) == []

    async def test_what_is_known_of_an_exit_stays_known_while_it_is_not_listed(
        self, backend: Backend
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(*laned_pages(9))
        await client.good(*await client.take(2), wire_bytes=500)
        await put_pool(client.frontier, 1, interval_s=0.5)
        assert [each.id for each in await client.frontier.exits(DC)] == [exit_id(0)]
        assert (await client.pool()).rules.interval_s == 0.5
        assert (await client.pool()).exits == 1
        for _ in range(3):
            await backend.advance(1.0)
            assert exits_of([await client.lease_one()]) == [exit_id(0)]
        await put_pool(client.frontier, 2)
        second = await client.exit(1)
        assert (second.requests, second.wire_bytes) == (1, 500)
        assert exits_of([await client.lease_one()]) == [exit_id(1)]

    async def test_one_that_is_no_longer_listed_is_free_when_its_request_ends(
        self, backend: Backend
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(3))
        lease = await client.lease_one()
        await put_pool(client.frontier, 0)
        await client.good(lease)
        await put_pool(client.frontier, 1)
        await client.assert_free()

    async def test_exits_that_come_later_are_used_soon(self, backend: Backend) -> None:
        client = exit_client(backend)
        await client.begin(*laned_pages(3))
        assert await client.take() == []
        await put_pool(client.frontier, 0)
        assert await client.take() == []
        await put_pool(client.frontier, 1)
        await settle(backend)
        assert len(await client.take()) == 3

    async def test_are_known_to_all_crawls_and_outlive_them(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 1)
        for each in (client, other):
            await each.begin(*laned_pages(1))
            await each.good(await each.lease_one())
        await client.frontier.forget(client.crawl)
        await client.frontier.forget(other.crawl)
        assert (await client.exit()).requests == 2
        assert (await client.pool()).spent.requests == 2


class TestLanes:
    async def test_a_lease_names_the_exit(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(laned(f"{HOST}/by"), entry(f"{HOST}/direct"))
        leases = {lease.task.url: lease for lease in await client.take()}
        lent = leases[f"http://{HOST}/by"].lent
        assert lent is not None
        assert (lent.exit, lent.session, lent.pool) == (exit_id(0), 0, DC)
        assert (lent.blocks, lent.tried) == (0, 0)
        assert leases[f"http://{HOST}/by"].task.proxy_pool == DC
        assert leases[f"http://{HOST}/direct"].lent is None
        assert (await client.exit()).leased == 1

    async def test_are_never_shared(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 9)
        await client.begin(*laned_pages(99), concurrency_per_host=4)
        grant = await client.ask(50)
        assert len(grant.leases) <= 4
        assert grant.shares == {}
        assert not any(lease.shared for lease in grant.leases)

    async def test_are_told_with_what_waits_in_them(self, backend: Backend) -> None:
        client = exit_client(backend)
        await client.begin(
            *laned_pages(2), *laned_pages(3, pool=RES), *pages(4), *laned_pages(5, SECOND_HOST)
        )
        lanes = await client.frontier.lanes(client.crawl, 9)
        found = [(lane.host, lane.pool, lane.waiting) for lane in lanes]
        assert found == [(SECOND_HOST, DC, 5), (HOST, RES, 3), (HOST, DC, 2)]
        assert [lane.tier_pool for lane in lanes] == [DC, RES, DC]
        assert not any(lane.is_site_blocking or lane.starved_s for lane in lanes)
        assert len(await client.frontier.lanes(client.crawl, 1)) == 1
        assert (await client.host()).waiting == 9
        assert (await client.host(SECOND_HOST)).waiting == 5
        assert (await client.stats()).waiting == 14

    async def test_with_nothing_left_are_not_told(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(1), *pages(2))
        await client.good(*await client.take(1))
        await client.take()
        assert await client.frontier.lanes(client.crawl, 9) == []

    async def test_the_best_task_goes_first(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*(laned(f"{HOST}/{n}", priority=n) for n in (1, 3, 2)))
        assert urls_of(await client.take()) == [f"{HOST}/{n}" for n in (3, 2, 1)]

    async def test_what_is_given_back_goes_to_the_front(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(3))
        first = await client.lease_one()
        await give_back(client, [first])
        await client.assert_free()
        again = await client.lease_one()
        assert again.fingerprint == first.fingerprint
        assert again.task.retry_count == 0

    async def test_what_is_put_off_comes_back_to_its_lane(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(1))
        lease = await client.lease_one()
        await client.end(lease, Verdict.RETRY, retry_in_s=20.0)
        assert await client.frontier.lanes(client.crawl, 9) == []
        assert await client.state(lease) is TaskState.DELAYED
        await backend.advance(20.1)
        again = await client.lease_one()
        assert (again.task.retry_count, exits_of([again])) == (1, [exit_id(0)])

    async def test_follow_ups_wait_in_the_lanes_of_their_pools(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(entry(f"{HOST}/start"))
        start = await client.lease_one()
        await client.end(start, follow_ups=[*laned_pages(2), *laned_pages(1, pool=RES), *pages(1)])
        assert (await client.lane()).waiting == 2
        assert (await client.lane(pool=RES)).waiting == 1
        assert sorted(exits_of(await client.take())) == [exit_id(0), exit_id(0), "no exit"]

    async def test_a_task_is_the_same_in_every_pool(self, backend: Backend) -> None:
        client = exit_client(backend)
        await client.begin(laned(f"{HOST}/"))
        assert (await client.add(laned(f"{HOST}/", RES), entry(f"{HOST}/"))).duplicates == 2

    async def test_a_crawl_is_over_when_they_are_empty(self, backend: Backend) -> None:
        client = exit_client(backend)
        await client.begin(*pages(1), *laned_pages(1))
        await client.control(Control.SEAL)
        await client.end(await client.lease_one())
        assert (await client.ask()).state is CrawlState.RUNNING
        await put_pool(client.frontier, 1)
        await settle(backend)
        await client.good(await client.lease_one())
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_max_pages_counts_them(self, backend: Backend) -> None:
        backend.needs("exact_max_pages")
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(5), max_pages=2)
        assert len(await client.take()) == 2

    async def test_nothing_is_handed_out_while_paused(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(2))
        await client.control(Control.PAUSE)
        assert await client.take() == []
        await client.control(Control.RESUME)
        assert len(await client.take()) == 2


class TestWhatAWorkerAsksFor:
    async def test_it_gets_no_tasks_of_pools_that_it_does_not_know(self, backend: Backend) -> None:
        client = exit_client(backend, pools=(RES,))
        await put_pool(client.frontier, 2)
        await put_pool(client.frontier, 1, RES)
        await client.begin(*laned_pages(5), *laned_pages(2, pool=RES))
        assert exits_of(await client.take()) == [exit_id(0, RES)] * 2
        nobody = another_client(backend, pools=())
        assert await nobody.take() == []
        knows = another_client(backend, pools=(DC,))
        assert len(await knows.take()) == 5

    async def test_no_more_than_its_slots(self, backend: Backend) -> None:
        client = exit_client(backend, slots=2)
        await put_pool(client.frontier, 4)
        await client.begin(*laned_pages(9), *laned_pages(9, SECOND_HOST), *pages(9))
        leases = await client.lease(PLENTY)
        assert sum(lease.lent is not None for lease in leases) == 2
        assert sum(lease.lent is None for lease in leases) == 9, "those need no slot"

    async def test_nor_than_its_room(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 4)
        await client.begin(*laned_pages(9))
        assert len(await client.lease(3)) <= 3
        assert await client.lease(0) == []

    async def test_nothing_by_exits_without_a_slot(self, backend: Backend) -> None:
        client = exit_client(backend, slots=0)
        await put_pool(client.frontier, 4)
        await client.begin(*laned_pages(9), *pages(2))
        assert exits_of(await client.take()) == ["no exit"] * 2

    async def test_when_to_ask_again(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, interval_s=10.0)
        await client.begin(*laned_pages(9))
        await client.good(await client.lease_one())
        grant = await client.ask()
        assert grant.leases == []
        assert grant.wait_s == pytest.approx(10.0, abs=0.5)
        await backend.advance(10.0 + A_MOMENT_S)
        await client.lease_one()

    async def test_in_exchange_too(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, concurrency=1)
        await client.begin(*laned_pages(3))
        lease = await client.lease_one()
        stale, grant = await client.exchange(outcome(lease), limit=9)
        assert (stale, exits_of(grant.leases)) == ([], [exit_id(0)])
        assert (await client.exit()).leased == 1

    async def test_robots_txt_goes_by_the_same_pool_and_alone(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(*laned_pages(5), robots=True)
        (lease,) = await client.take()
        assert lease.robots_at is None
        assert exits_of([lease]) == [exit_id(0)]
        await client.end(lease, Verdict.RETURNED, robots=ALLOW_ALL)
        await settle(backend)
        leases = await client.take()
        assert len(leases) == 5
        assert all(lease.robots_at is not None for lease in leases)


class TestWithoutPools:
    async def test_a_crawl_goes_on_as_ever(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.start(*pages(40), concurrency_per_host=2)
        grant = await client.ask(30)
        assert grant.shares == {HOST: 2}
        assert all(lease.shared and lease.lent is None for lease in grant.leases)
        assert await client.frontier.lanes(client.crawl, 9) == []
        assert [each.used_at for each in await client.frontier.exits(DC)] == [0.0, 0.0]
