"""Lanes of exits: tasks that wait for one pool hold up no others, and lost tasks come back."""

from __future__ import annotations

import pytest

from shoal.core.cookies import Cookie, Jar
from shoal.core.exit_policy import LANES_SEEN
from shoal.frontier.values import Control, CrawlState, TaskState, Verdict
from support.exits import (
    BLOCK,
    DC,
    HOURS,
    RES,
    SECOND_HOST,
    another_client,
    exit_client,
    exit_id,
    exits_of,
    laned,
    laned_pages,
    pass_time,
    put_pool,
    settle,
    urls_of,
)
from support.frontiers import A_MOMENT_S, HOST, Backend, entry, outcome, pages

LEASE_S = 30.0


class TestNothingElseWaits:
    @pytest.mark.parametrize("exits", [None, 0], ids=["nobody put", "without an exit"])
    async def test_for_a_pool(self, backend: Backend, exits: int | None) -> None:
        client = exit_client(backend)
        if exits is not None:
            await put_pool(client.frontier, exits)
        await put_pool(client.frontier, 1, RES)
        await client.begin(
            *laned_pages(50, priority=9),
            *laned_pages(2, pool=RES),
            *pages(3),
            *pages(2, "c.example"),
        )
        found = exits_of(await client.take())
        assert sorted(found) == ["no exit"] * 5 + [exit_id(0, RES)] * 2
        grant = await client.ask()
        assert grant.leases == []
        assert grant.wait_s is not None
        assert (await client.lane()).waiting == 50

    async def test_for_a_pool_that_is_blocked_at_the_host(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await put_pool(client.frontier, 1, RES)
        await client.begin(*laned_pages(9))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease)
        await settle(backend)
        await client.add(*pages(2), *laned_pages(2, pool=RES), *laned_pages(2, SECOND_HOST))
        found = sorted(exits_of(await client.take()))
        assert found == [exit_id(0), exit_id(0), "no exit", "no exit", *[exit_id(0, RES)] * 2]

    async def test_for_exits_that_are_out(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await put_pool(client.frontier, 1, RES)
        await client.begin(*laned_pages(9))
        for _ in range(3):
            await backend.advance(A_MOMENT_S)
            await client.faulty(await client.lease_one())
        await client.add(*pages(1), *laned_pages(1, SECOND_HOST), *laned_pages(1, pool=RES))
        assert sorted(exits_of(await client.take())) == ["no exit", exit_id(0, RES)]

    async def test_for_exits_that_are_busy(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, concurrency=1)
        await client.begin(*laned_pages(9))
        await client.lease_one()
        await client.add(*pages(1), *laned_pages(9, SECOND_HOST))
        assert exits_of(await client.take()) == ["no exit"]

    async def test_for_many_hosts_of_an_empty_pool(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0)
        await put_pool(client.frontier, 1, RES)
        await client.begin(*(laned(f"h{n}.example/") for n in range(LANES_SEEN + 50)))
        await client.take()
        await client.add(laned("z.example/", RES))
        assert exits_of(await client.take()) == [exit_id(0, RES)]

    async def test_for_many_hosts_that_block_all_exits(self, backend: Backend) -> None:
        """Hosts of the same pool that can be served get their turn."""
        client = exit_client(backend)
        await put_pool(client.frontier, 1, concurrency=1000)
        count = LANES_SEEN + 20
        await client.begin(*(laned(f"h{n}.example/{m}") for n in range(count) for m in range(2)))
        leases = [lease for _ in range(20) for lease in await client.lease(40)]
        first = {lease.task.site: lease for lease in leases}
        await backend.advance(A_MOMENT_S)
        await client.blocked(*first.values())
        await client.add(laned("z.example/"))
        for _ in range(10):
            await settle(backend)
            if "z.example/" in urls_of(await client.take()):
                break
        else:
            pytest.fail("the one that could be served never was")

    async def test_a_worker_that_knows_no_exits_leaves_lanes_to_others(
        self, backend: Backend
    ) -> None:
        client, knows = exit_client(backend, pools=()), another_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(1))
        for _ in range(3):
            assert (await client.ask()).leases == []
        assert len(await knows.take()) == 1


class TestChainsInLanes:
    async def test_one_after_the_other_whatever_they_go_by(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await put_pool(client.frontier, 2, RES)
        steps = [
            laned(f"{HOST}/0", chain="c"),
            entry(f"{HOST}/1", chain="c"),
            laned(f"{HOST}/2", RES, chain="c"),
            laned(f"{HOST}/3", chain="c"),
        ]
        await client.begin(*steps)
        await client.control(Control.SEAL)
        done = list[str]()
        while leases := await client.take():
            (lease,) = leases
            done += urls_of(leases)
            assert (lease.lent is None) == (lease.task.proxy_pool is None)
            await client.good(lease)
        assert done == [f"{HOST}/{n}" for n in range(4)]
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_keep_their_cookies(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        steps = [laned(f"{HOST}/0", chain="c"), entry(f"{HOST}/1", chain="c")]
        await client.begin(*steps, laned(f"{HOST}/2", chain="c"), cookies="visit")
        jars = list[Jar | None]()
        while leases := await client.take():
            (lease,) = leases
            jars.append(lease.cookies)
            cookie = Cookie(name="n", value=str(len(jars)), domain=HOST)
            await client.good(lease, cookies=Jar((cookie,)))
        assert [jar and jar.cookies[0].value for jar in jars] == [None, "1", "2"]

    async def test_a_blocked_step_holds_the_chain(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(laned(f"{HOST}/0", chain="c"), laned(f"{HOST}/1", chain="c"))
        (lease,) = await client.take()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease)
        await settle(backend)
        (again,) = await client.take()
        assert urls_of([again]) == [f"{HOST}/0"]
        assert exits_of([again]) == [exit_id(1)]
        await client.good(again)
        assert urls_of(await client.take()) == [f"{HOST}/1"]


class TestLossesInLanes:
    async def test_a_task_that_lost_two_workers_is_handed_out_alone(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(*laned_pages(2), max_losses=5)
        for _ in range(2):
            leases = await client.take()
            assert [lease.alone for lease in leases] == [False] * 2
            await client.frontier.release(client.crawl, client.worker)
            await settle(backend)
        await client.assert_free()
        (suspect,) = await client.lease(9)
        assert suspect.alone
        assert exits_of([suspect]) != ["no exit"]
        assert await client.take() == [], "not while it holds one"
        await client.good(suspect)
        await settle(backend)
        (suspect,) = await client.take()
        assert suspect.alone
        await client.good(suspect)
        await client.assert_free()

    async def test_a_suspect_waits_for_its_exit_too(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(1), max_losses=5)
        for _ in range(2):
            await client.take()
            await client.frontier.release(client.crawl, client.worker)
            await settle(backend)
        await put_pool(client.frontier, 0)
        assert await client.take() == []
        await put_pool(client.frontier, 1)
        await settle(backend)
        (suspect,) = await client.take()
        assert (suspect.alone, exits_of([suspect])) == (True, [exit_id(0)])

    async def test_poison_is_dead_in_a_lane_too(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(laned(f"{HOST}/"), max_losses=2, lease_s=LEASE_S)
        await client.control(Control.SEAL)
        for _ in range(2):
            (lease,) = await client.take()
            await backend.advance(LEASE_S + 1.0)
        grant = await client.ask()
        assert (grant.leases, grant.state) == ([], CrawlState.FINISHED)
        assert await client.state(lease) is TaskState.DEAD
        await client.assert_free()


class TestDeadInLanes:
    async def test_a_retry_begins_anew(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 3)
        await client.begin(laned(f"{HOST}/"))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease)
        await settle(backend)
        lease = await client.lease_one()
        assert lease.lent is not None
        assert (lease.lent.blocks, lease.lent.tried) == (1, 1)
        await backend.advance(A_MOMENT_S)
        block = {"passage": BLOCK, "blocked": 1}
        await client.end(lease, Verdict.DEAD, reason="blocked 2 times", **block)
        (dead,) = await client.frontier.dead(client.crawl, 9)
        assert (dead.reason, dead.task.proxy_pool) == ("blocked 2 times", DC)
        assert await client.frontier.retry_dead(client.crawl) == 1
        assert (await client.lane()).waiting == 1
        await backend.advance(HOURS)
        lease = await client.lease_one()
        assert lease.lent is not None
        assert (lease.lent.blocks, lease.lent.tried, lease.task.retry_count) == (0, 0, 0)

    async def test_those_that_are_purged_are_gone(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1)
        await client.begin(*laned_pages(2))
        leases = await client.take()
        await client.finish(*(outcome(lease, Verdict.DEAD) for lease in leases))
        assert await client.frontier.purge_dead(client.crawl) == 2
        await pass_time(backend, client, 60.0)
        assert (await client.stats()).dropped == 2
        assert await client.frontier.lanes(client.crawl, 9) == []
