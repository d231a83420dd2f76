"""Shared hosts beside everything else: hosts that are not shared, unused shares, other hosts."""

from __future__ import annotations

import pytest

from contract.frontier.politeness import refuse
from contract.frontier.sharing import (
    OTHER_HOST,
    PAGES,
    PLENTY,
    ROOM,
    assert_within,
    fleet_of,
    share_evenly,
    start,
)
from shoal.core.policy import BREAKER_AFTER, PUSHBACK_FIRST_S
from shoal.core.records import Robots
from shoal.core.sharing import SHARE_WAIT_S, WANT_S
from shoal.frontier.values import Control, CrawlState, Verdict
from support.frontiers import A_MOMENT_S, ALLOW_ALL, HOST, Backend, entry, outcome, pages
from support.sharers import SharingClient


class TestUnshared:
    """Hosts with a rate, or with one request in flight at most, are not shared."""

    async def test_a_host_with_a_rate(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, rate="1/s")
        for worker in (first, second):
            grant = await worker.ask()
            assert [lease.shared for lease in grant.leases] == [False] * (worker is first)
            assert grant.shares == {}
        await backend.advance(1.2)
        grant = await second.ask()
        assert [(lease.shared, lease.paced) for lease in grant.leases] == [(False, True)]

    async def test_an_unknown_robots_txt(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, robots=True)
        grant = await first.ask()
        assert [(lease.shared, lease.robots_at) for lease in grant.leases] == [(False, None)]
        assert (await second.ask()).leases == []
        (lease,) = first.plain
        await first.client.end(lease, Verdict.RETURNED, robots=ALLOW_ALL)
        assert (await second.ask()).shares == {HOST: ROOM}

    async def test_one_that_has_expired(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, robots=True)
        (lease,) = (await first.ask()).leases
        first.plain.clear()
        known = Robots(text="", ttl_s=5.0)
        await first.client.end(lease, Verdict.RETURNED, robots=known)
        assert (await first.ask()).shares == {HOST: ROOM}
        await backend.advance(5.1)
        assert (await second.ask()).leases == [], "what is in flight counts"
        assert (await first.ask()).shares == {HOST: 0}
        assert (await second.ask()).leases == []
        first.answer()
        await first.ask(0)
        grant = await second.ask()
        assert [(lease.shared, lease.robots_at) for lease in grant.leases] == [(False, None)]

    async def test_a_host_that_said_wait(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await share_evenly(first, second)
        await backend.advance(A_MOMENT_S)
        refused = first.sent[HOST].pop()
        await refuse(first.client, refused)
        for worker in (first, second):
            worker.answer(count=1)
            assert (await worker.ask()).shares == {HOST: 0}
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        second.answer()
        await second.ask(0)
        first.answer()
        await first.ask(0)
        grant = await second.ask()
        assert [(lease.shared, lease.paced) for lease in grant.leases] == [(False, True)]
        assert (await first.ask()).leases == []

    async def test_not_before_the_shares_of_others_are_over(self, backend: Backend) -> None:
        """A worker that is gone cannot be told to stop."""
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask()
        await refuse(first.client, first.sent[HOST][0])
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        grant = await second.ask()
        assert grant.leases == []
        assert grant.wait_s is not None
        assert grant.wait_s > 1.0
        await backend.advance(grant.wait_s + A_MOMENT_S)
        assert [lease.shared for lease in (await second.ask()).leases] == [False]

    async def test_a_host_that_only_fails(self, backend: Backend) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker)
        await worker.ask()
        for _ in range(BREAKER_AFTER):
            lease = worker.sent[HOST][0]
            worker.drop([lease])
            worker.send()
            await worker.client.end(lease, Verdict.DEAD, fault=True)
        assert (await worker.client.host()).is_broken
        assert (await worker.ask()).shares == {HOST: 0}
        await backend.advance(5.0)
        assert (await worker.ask()).leases == [], "not while others are under way"
        cut_short = worker.sent[HOST]
        worker.drop(cut_short)
        await worker.client.finish(*(outcome(lease, Verdict.RETURNED) for lease in cut_short))
        await worker.ask(0)
        assert [lease.shared for lease in (await worker.ask()).leases] == [False]

    @pytest.mark.parametrize("action", [Control.PAUSE, Control.CANCEL])
    async def test_a_crawl_that_stops(self, backend: Backend, action: Control) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker)
        await worker.ask()
        state = await worker.client.control(action)
        grant = await worker.client.ask(99, worker.holdings())
        assert (grant.state, grant.leases, grant.shares) == (state, [], {HOST: 0})

    async def test_goes_on_where_it_was(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await share_evenly(first, second)
        await first.client.control(Control.PAUSE)
        for worker in (first, second):
            await worker.ask()
            worker.answer()
            await worker.ask()
            assert not worker.told
        assert (await first.client.stats()).leased == 0
        await first.client.control(Control.RESUME)
        await share_evenly(first, second)


class TestNothingIsLeftBehind:
    async def work_off(self, *fleet: SharingClient) -> None:
        for _ in range(99):
            for worker in fleet:
                await worker.ask()
                worker.answer()
                assert_within(ROOM, *fleet)
        for worker in fleet:
            await worker.give_up()

    async def test_when_all_is_done(self, backend: Backend) -> None:
        first, second, third = fleet_of(backend, 3)
        await start(first, 60)
        await first.client.control(Control.SEAL)
        await self.work_off(first, second)
        stats = await first.client.stats()
        assert (stats.state, stats.done, stats.leased) == (CrawlState.FINISHED, 60, 0)
        host = await first.client.host()
        assert (host.waiting, host.leased) == (0, 0)
        await start(first)
        assert (await third.ask()).shares == {HOST: ROOM}

    @pytest.mark.parametrize("cancelled", [False, True])
    async def test_of_a_crawl_that_is_started_over(self, backend: Backend, cancelled: bool) -> None:
        first, second, third = fleet_of(backend, 3)
        await start(first)
        await share_evenly(first, second)
        if cancelled:
            await first.client.control(Control.CANCEL)
        await first.client.frontier.forget(first.client.crawl)
        await start(first)
        assert (await third.ask()).shares == {HOST: ROOM}

    async def test_of_tasks_that_were_given_back(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, 40)
        await first.ask()
        await first.give_up()
        stats = await first.client.stats()
        assert (stats.leased, stats.done) == (0, ROOM)
        grant = await second.ask(ROOM)
        assert (len(grant.leases), grant.shares) == (ROOM, {}), "nobody shares it any more"

    async def test_of_every_way_a_try_ends(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, 40)
        leases = (await first.ask()).leases
        ends = [*Verdict] * 9
        tries = [outcome(lease, end) for lease, end in zip(leases, ends, strict=False)]
        await first.client.finish(*tries)
        first.drop(leases)
        await first.ask(0)
        assert (await first.client.stats()).leased == 0
        grant = await second.ask(ROOM)
        assert (len(grant.leases), grant.shares) == (ROOM, {})

    async def test_after_a_restart_it_goes_on(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await share_evenly(first, second)
        await backend.reopen()
        first.client, second.client = backend.another("worker-0"), backend.another("worker-1")
        for worker in (first, second):
            worker.answer()
            assert (await worker.ask()).shares == {HOST: ROOM // 2}


class TestAmongOthers:
    async def test_priorities_hold(self, backend: Backend) -> None:
        backend.needs("strict_priorities")
        (worker,) = fleet_of(backend, 1)
        await start(worker, 0)
        shuffled = (number * 7 % PLENTY for number in range(PLENTY))
        await worker.client.add(*(entry(f"{HOST}/{n}", priority=n) for n in shuffled))
        leases = (await worker.ask()).leases
        assert all(lease.shared for lease in leases)
        assert [lease.task.priority for lease in leases] == [*range(PLENTY)][::-1]

    async def test_a_grant_is_spread_over_the_hosts(self, backend: Backend) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker)
        await worker.client.add(*pages(99, OTHER_HOST))
        sites = [lease.task.site for lease in (await worker.ask(20)).leases]
        assert min(sites.count(HOST), sites.count(OTHER_HOST)) >= 5
        assert worker.told == {HOST: ROOM, OTHER_HOST: ROOM}

    async def test_a_crowded_host_does_not_keep_others_waiting(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask()
        await second.client.add(*pages(9, OTHER_HOST))
        grant = await second.ask(1)
        assert [lease.task.site for lease in grant.leases] == [OTHER_HOST]

    async def test_nor_do_many_that_are_before_them(self, backend: Backend) -> None:
        """Even a request for a single task gets past hosts without room."""
        first, second = fleet_of(backend, 2)
        await start(first, 0, concurrency_per_host=1)
        crowded = [f"{number}.example" for number in range(9)]
        await first.client.add(*(page for host in crowded for page in pages(9, host)))
        await first.ask()
        assert first.told == dict.fromkeys(crowded, 1)
        await second.client.add(*pages(9, OTHER_HOST))
        for _ in range(2):
            await backend.advance(A_MOMENT_S)
            grant = await second.ask(1)
            assert [lease.task.site for lease in grant.leases] == [OTHER_HOST]
            await second.end_plain()

    async def test_a_share_that_is_of_no_use_is_given_back(self, backend: Backend) -> None:
        """A worker that has no tasks of a host, and gets tasks of others first, does not keep its
        share."""
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.client.add(*pages(PAGES, OTHER_HOST))
        assert (await first.ask()).shares == {HOST: ROOM, OTHER_HOST: ROOM}
        for host in (HOST, OTHER_HOST):
            while first.answer(host):
                pass
        grant = await first.ask(1)
        (lease,) = grant.leases
        idle = HOST if lease.task.site == OTHER_HOST else OTHER_HOST
        assert grant.shares == {lease.task.site: ROOM, idle: 0}
        assert (await second.ask()).shares[idle] == ROOM

    async def test_nor_is_it_asked_again_and_again_without_a_wait(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask()
        for _ in range(3):
            grant = await second.ask()
            assert grant.leases == []
            assert grant.wait_s is not None
            assert SHARE_WAIT_S <= grant.wait_s < WANT_S
        assert (await second.client.ask()).wait_s == pytest.approx(SHARE_WAIT_S, abs=0.01)

    async def test_max_pages_holds(self, backend: Backend) -> None:
        backend.needs("exact_max_pages")
        first, second = fleet_of(backend, 2)
        await start(first, max_pages=10)
        assert len((await first.ask()).leases) == 10
        assert (await second.ask()).leases == []

    async def test_chains_hold(self, backend: Backend) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker, 40)
        await worker.client.add(*(entry(f"{HOST}/chain/{n}", chain="c") for n in range(3)))
        chained = [lease for lease in (await worker.ask(0)).leases if lease.task.chain]
        for _ in range(40):
            chained += [lease for lease in (await worker.ask()).leases if lease.task.chain]
            held = [
                t for leases in (worker.sent, worker.unsent) for ls in leases.values() for t in ls
            ]
            assert sum(lease.task.chain is not None for lease in held) <= 1
            worker.answer()
        assert [lease.task.url[-1] for lease in chained] == ["0", "1", "2"]
