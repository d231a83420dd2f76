"""Leasing: limits, priorities, fairness, and when to ask again."""

from __future__ import annotations

import time

import pytest

from shoal.frontier.values import Control, CrawlState, Grant, Holding, Lease, TaskState, Verdict
from support.frontiers import A_MOMENT_S, Backend, Client, entry, outcome, pages


def paths(leases: list[Lease]) -> list[str]:
    """The last parts of the URLs of leased tasks."""
    return [lease.task.url.rpartition("/")[2] for lease in leases]


def assert_nothing(grant: Grant, state: CrawlState) -> None:
    """Check that there is no lease, and that asking again is useless until the crawl changes."""
    assert (grant.state, grant.leases, grant.wait_s) == (state, [], None)


class TestLease:
    async def test_gives_no_more_than_asked_for(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), *pages(3, "b.example"), *pages(3, "c.example"))
        assert len(await client.lease(2)) == 2
        assert await client.lease(0) == []
        assert (await client.stats()).leased == 2

    async def test_gives_a_task_to_one_worker_only(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(5))
        mine, theirs = await client.lease(3), await other.lease(9)
        assert (len(mine), len(theirs)) == (3, 2)
        assert len({lease.fingerprint for lease in mine + theirs}) == 5
        assert len({lease.token for lease in mine + theirs}) == 5

    async def test_is_seen_by_everybody(self, backend: Backend) -> None:
        client, other = backend.client("worker-7"), backend.another()
        await client.start(*pages(1))
        lease = await client.lease_one()
        record = await other.record(lease)
        assert (record.state, record.worker) == (TaskState.LEASED, "worker-7")
        assert record.due is not None
        stats = await other.stats()
        assert (stats.waiting, stats.leased) == (0, 1)

    async def test_tells_how_old_the_permission_is(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), rate="1/s")
        before = time.monotonic()
        grant = await client.ask()
        assert grant.leases
        assert before <= grant.decided <= time.monotonic()

    async def test_serves_priorities_first_then_the_oldest(self, backend: Backend) -> None:
        backend.needs("strict_priorities")
        client = backend.client()
        await client.start(
            *(entry(f"a.example/late{n}", priority=-1) for n in range(2)),
            *(entry(f"a.example/plain{n}") for n in range(2)),
        )
        await client.add(*(entry(f"a.example/soon{n}", priority=5) for n in range(2)))
        await client.add(entry("a.example/plain2"))
        order = [paths([await client.lease_one()])[0] for _ in range(7)]
        assert order == ["soon0", "soon1", "plain0", "plain1", "plain2", "late0", "late1"]

    async def test_serves_in_order_within_one_grant(self, backend: Backend) -> None:
        backend.needs("strict_priorities")
        client = backend.client()
        await client.start(*(entry(f"a.example/{n}", priority=n) for n in (1, 3, 2)))
        assert paths(await client.lease(3)) == ["3", "2", "1"]

    @pytest.mark.parametrize("action", [Control.PAUSE, Control.CANCEL])
    async def test_stops_with_the_crawl(self, backend: Backend, action: Control) -> None:
        client = backend.client()
        await client.start(*pages(2))
        state = await client.control(action)
        assert_nothing(await client.ask(2), state)

    async def test_a_finished_crawl_hands_out_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.SEAL)
        assert_nothing(await client.ask(), CrawlState.FINISHED)


class TestConcurrency:
    async def test_is_limited_per_host_for_the_whole_fleet(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(9), *pages(9, "b.example"), concurrency_per_host=3)
        leases = await client.send(4) + await other.send(9) + await client.send(9)
        sites = [lease.task.site for lease in leases]
        assert (sites.count("a.example"), sites.count("b.example")) == (3, 3)

    async def test_who_fills_a_host_is_told(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(9), entry("b.example/"), concurrency_per_host=3)
        first = await client.lease(3)
        assert {lease.crowded for lease in first} == {False}
        last = await other.lease(1)
        assert {lease.crowded for lease in last} == {True}
        await client.end(first[0])
        assert (await client.lease_one()).crowded

    async def test_opens_again_with_every_end(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(4), concurrency_per_host=1)
        for verdict in (Verdict.DONE, Verdict.RETRY, Verdict.DEAD, Verdict.DROPPED):
            await client.end(await client.lease_one(), verdict, retry_in_s=60.0)


class TestFairness:
    async def test_a_long_queue_does_not_delay_a_short_one(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1000), concurrency_per_host=1000)
        await client.lease(10)
        await client.add(entry("b.example/"))
        await backend.advance(A_MOMENT_S)
        assert "b.example" in {lease.task.site for lease in await client.lease(10)}

    async def test_a_full_host_does_not_delay_others(self, backend: Backend) -> None:
        backend.needs("whole_backlog")
        client = backend.client()
        await client.start(*pages(50), concurrency_per_host=2)
        assert len(await client.send(10)) == 2
        await client.add(*pages(2, "b.example"))
        grant = await client.ask(10, {"a.example": Holding(in_flight=2, unsent=0)})
        assert [lease.task.site for lease in grant.leases].count("b.example") == 2

    async def test_hosts_are_served_in_turn(self, backend: Backend) -> None:
        client = backend.client()
        hosts = ["a.example", "b.example", "c.example"]
        await client.start(*(page for host in hosts for page in pages(4, host)))
        served = []
        for _ in range(12):
            served.append((await client.lease_one()).task.site)
            await backend.advance(A_MOMENT_S)
        rounds = [sorted(served[n : n + 3]) for n in range(0, 12, 3)]
        assert rounds == [hosts] * 4

    async def test_one_grant_is_spread_over_the_ready_hosts(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(20), *pages(20, "b.example"), *pages(20, "c.example"))
        sites = [lease.task.site for lease in await client.lease(9)]
        assert len(set(sites)) == 3
        # With several shards, the hosts of one shard divide what that is asked for.
        assert min(sites.count(host) for host in set(sites)) >= 2


class TestMaxPages:
    async def test_exactly_so_many_are_done(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(9), max_pages=5)
        await client.control(Control.SEAL)
        leases = await client.lease(3) + await other.lease(9)
        assert len(leases) == 5
        assert await other.lease() == []
        await client.finish(*map(outcome, leases))
        stats = await client.stats()
        assert (stats.state, stats.done, stats.waiting) == (CrawlState.FINISHED, 5, 4)

    async def test_dead_ones_count(self, backend: Backend) -> None:
        """`max_pages` is for trying a spider, which may fail on every page."""
        client = backend.client()
        await client.start(*pages(9), max_pages=3)
        await client.control(Control.SEAL)
        first, second, third = await client.lease(9)
        await client.finish(outcome(first), outcome(second, Verdict.DEAD))
        assert await client.lease() == []
        await client.end(third, Verdict.DEAD)
        stats = await client.stats()
        assert (stats.state, stats.done, stats.dead) == (CrawlState.FINISHED, 1, 2)

    async def test_what_was_dropped_makes_room_for_another(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), max_pages=2)
        await client.control(Control.SEAL)
        first, second = await client.lease(9)
        await client.finish(outcome(first), outcome(second, Verdict.DROPPED))
        assert (await client.stats()).state is CrawlState.RUNNING
        await client.end(await client.lease_one())
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_a_higher_limit_continues(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), max_pages=2)
        await client.control(Control.SEAL)
        assert await client.work_off() == 2
        await client.start(max_pages=6)
        await client.control(Control.SEAL)
        assert await client.work_off() == 4
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_a_lease_that_expired_makes_room_at_once(self, backend: Backend) -> None:
        backend.needs("exact_max_pages")
        client, other = backend.client(), backend.another()
        await client.start(*pages(2), max_pages=1, lease_s=10.0)
        await client.lease_one()
        assert await other.lease() == []
        await backend.advance(11.0)
        assert len(await other.lease()) == 1

    async def test_new_seeds_do_not_lift_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), max_pages=1)
        await client.control(Control.SEAL)
        await client.work_off()
        await client.add(entry("a.example/new"))
        assert_nothing(await client.ask(), CrawlState.FINISHED)


class TestWait:
    async def wait_s(self, client: Client, limit: int = 1) -> float:
        wait_s = (await client.ask(limit)).wait_s
        assert wait_s is not None
        return wait_s

    async def test_is_none_where_only_new_work_helps(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        assert_nothing(await client.ask(), CrawlState.RUNNING)

    async def test_is_zero_while_more_is_ready(self, backend: Backend) -> None:
        backend.needs("whole_backlog")
        client = backend.client()
        await client.start(*pages(3))
        assert await self.wait_s(client) == 0.0

    async def test_is_zero_while_another_host_is_ready(self, backend: Backend) -> None:
        backend.needs("exact_waits")
        client = backend.client()
        await client.start(*(entry(f"{name}.example/") for name in "abc"), rate="1/h")
        assert [await self.wait_s(client) for _ in range(2)] == [0.0, 0.0]
        assert await self.wait_s(client) > 0.0

    async def test_is_until_the_next_turn(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), rate="1/m")
        await client.end(await client.lease_one())
        assert 50 < await self.wait_s(client) <= 60.1

    async def test_is_until_a_lease_may_expire(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), robots=True, lease_s=50.0)
        await client.lease_one()
        assert 40 < await self.wait_s(client) <= 50

    async def test_is_until_a_retry_is_due(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.end(await client.lease_one(), Verdict.RETRY, retry_in_s=40.0)
        assert 30 < await self.wait_s(client) <= 40

    async def test_work_is_there_when_the_wait_is_over(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), rate="2/s")
        await client.end(await client.lease_one())
        await backend.advance(await self.wait_s(client) + A_MOMENT_S)
        await client.end(await client.lease_one(), Verdict.RETRY, retry_in_s=0.1)

    async def test_never_invites_to_ask_in_vain(self, backend: Backend) -> None:
        """If all pages that are still allowed are in flight, asking again at once is useless."""
        client = backend.client()
        await client.start(*pages(5), max_pages=1, lease_s=60.0)
        await client.lease_one()
        assert 50 < await self.wait_s(client) <= 60

    async def test_counts_from_the_slowest_host_no_more_than_needed(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), *pages(1, "b.example"), rate="1/h", lease_s=7200.0)
        assert len(await client.lease(5)) == 2
        await client.add(entry("c.example/"))
        assert (await client.lease_one()).task.site == "c.example"
        assert 3000 < await self.wait_s(client) <= 3601
