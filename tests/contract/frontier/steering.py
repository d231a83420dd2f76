"""A whole crawl: its exact end, pausing, cancelling, forgetting, and crawls that do not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from shoal.config import Rules
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import Frontier
from shoal.frontier.values import Added, Ask, Control, CrawlState, TaskState, Verdict
from support.frontiers import ALLOW_ALL, CRAWL, HOST, Backend, entry, outcome, pages, pulse

FINISHED, RUNNING = CrawlState.FINISHED, CrawlState.RUNNING


class TestEnd:
    async def test_an_unsealed_crawl_never_finishes(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.work_off()
        assert (await client.ask()).state is RUNNING

    async def test_sealing_an_empty_crawl_finishes_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.work_off()
        assert await client.control(Control.SEAL) is FINISHED
        assert (await client.stats()).finished_at is not None

    async def test_the_last_outcome_finishes_a_sealed_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        assert await client.control(Control.SEAL) is RUNNING
        one, two, three = await client.lease(3)
        await client.end(one)
        assert (await client.stats()).state is RUNNING
        await client.end(two, Verdict.DEAD)
        assert (await client.stats()).state is RUNNING
        await client.end(three, Verdict.DROPPED)
        assert (await client.stats()).state is FINISHED

    async def test_a_follow_up_of_the_last_one_keeps_it_running(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.control(Control.SEAL)
        await client.end(await client.lease_one(), follow_ups=[entry("b.example/")])
        assert (await client.stats()).state is RUNNING
        await client.end(await client.lease_one(), follow_ups=[entry("b.example/")])
        assert (await client.stats()).state is FINISHED

    @pytest.mark.parametrize("verdict", [Verdict.RETRY, Verdict.RETURNED])
    async def test_what_comes_back_keeps_it_running(
        self, backend: Backend, verdict: Verdict
    ) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.control(Control.SEAL)
        await client.end(await client.lease_one(), verdict, retry_in_s=600.0)
        assert (await client.ask(0)).state is RUNNING

    async def test_what_is_in_flight_keeps_it_running(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        assert await client.control(Control.SEAL) is RUNNING
        await client.end(lease)
        assert (await backend.another().ask()).state is FINISHED

    async def test_a_paused_crawl_whose_last_task_ends_is_finished(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.control(Control.SEAL)
        await client.control(Control.PAUSE)
        await client.end(lease)
        assert (await client.stats()).state is FINISHED


class TestPause:
    async def test_work_in_hand_is_finished_and_nothing_new_begun(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(3))
        lease = await client.lease_one()
        assert await other.control(Control.PAUSE) is CrawlState.PAUSED
        assert await client.lease() == []
        assert await client.renew(lease) == []
        await client.end(lease, follow_ups=[entry("b.example/")])
        assert await client.lease() == []
        assert await other.control(Control.RESUME) is RUNNING
        assert await client.work_off() == 3

    async def test_twice_is_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        for action, state in ((Control.PAUSE, CrawlState.PAUSED), (Control.RESUME, RUNNING)):
            assert await client.control(action) is state
            assert await client.control(action) is state

    @pytest.mark.parametrize("action", [Control.PAUSE, Control.RESUME])
    @pytest.mark.parametrize("end", [Control.SEAL, Control.CANCEL])
    async def test_a_crawl_that_is_over_can_do_neither(
        self, backend: Backend, action: Control, end: Control
    ) -> None:
        client = backend.client()
        await client.start()
        state = await client.control(end)
        assert state.over
        with pytest.raises(ConfigError, match=CRAWL):
            await client.control(action)
        assert (await client.stats()).state is state

    @pytest.mark.parametrize("action", [Control.PAUSE, Control.RESUME])
    async def test_a_crawl_that_nobody_started_can_do_neither(
        self, backend: Backend, action: Control
    ) -> None:
        client = backend.client()
        await client.add(*pages(1))
        with pytest.raises(ConfigError, match="new"):
            await client.control(action)
        assert (await client.stats()).state is CrawlState.NEW


class TestCancel:
    async def test_drops_all_that_has_not_ended(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(6), concurrency_per_host=5)
        done, dead, dropped, delayed, leased = await client.lease(5)
        await client.finish(
            outcome(done),
            outcome(dead, Verdict.DEAD, reason="dead"),
            outcome(dropped, Verdict.DROPPED, reason="dropped"),
            outcome(delayed, Verdict.RETRY, retry_in_s=600.0),
        )
        assert await client.control(Control.CANCEL) is CrawlState.CANCELLED
        stats = await client.stats()
        assert (stats.done, stats.dead, stats.dropped, stats.remaining) == (1, 1, 4, 0)
        assert stats.finished_at is not None
        for lease in (delayed, leased):
            record = await client.record(lease)
            assert (record.state, record.reason) == (TaskState.DROPPED, "cancelled")
        assert (await client.record(dropped)).reason == "dropped"
        assert (await client.record(dead)).reason == "dead"

    async def test_hosts_have_nothing_left_to_do(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(4))
        await client.end(await client.lease_one())
        await client.lease_one()
        await client.control(Control.CANCEL)
        host = await client.host()
        assert (host.waiting, host.leased, host.done) == (0, 0, 1)

    async def test_voids_the_leases(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.control(Control.CANCEL)
        assert await client.finish(outcome(lease, follow_ups=[entry("b.example/")])) == [lease]
        assert await client.renew(lease) == [lease]
        assert await client.frontier.holders(CRAWL) == []
        assert await client.frontier.release(CRAWL, client.worker) == 0
        stats = await client.stats()
        assert (stats.added, stats.dropped, stats.state) == (1, 1, CrawlState.CANCELLED)

    async def test_is_too_late_for_a_finished_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        assert await client.control(Control.SEAL) is CrawlState.FINISHED
        with pytest.raises(ConfigError, match="finished"):
            await client.control(Control.CANCEL)
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_works_on_a_paused_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        await client.control(Control.PAUSE)
        assert await client.control(Control.CANCEL) is CrawlState.CANCELLED
        assert (await client.stats()).dropped == 2


class TestForget:
    async def test_workers_can_tell_that_it_was_started_over(self, backend: Backend) -> None:
        client = backend.client()
        epochs = set()
        for _ in range(3):
            await client.start(*pages(2))
            epochs.add((await client.ask(1)).epoch)
            assert (await client.ask(1)).epoch in epochs
            await client.frontier.forget(CRAWL)
        assert len(epochs) == 3

    async def test_all_of_it_is_gone_and_can_be_started_anew(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), rate="1/h")
        await client.end(await client.lease_one(), robots=ALLOW_ALL)
        await client.control(Control.CANCEL)
        await client.frontier.forget(CRAWL)
        assert await client.frontier.crawls() == []
        await client.start()
        stats = await client.stats()
        assert (stats.added, stats.dropped, stats.state) == (0, 0, RUNNING)
        assert await client.add(*pages(3)) == Added(added=3)
        assert await client.frontier.robots(CRAWL, HOST) is None
        assert len(await client.lease(9)) == 3

    async def test_another_client_goes_on_with_the_new_one(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1))
        await other.add(*pages(1, "b.example"))
        await client.frontier.forget(CRAWL)
        await client.start(*pages(1, "c.example"))
        assert await other.add(*pages(1, "b.example")) == Added(added=1)
        sites = {lease.task.site for lease in await client.lease(9)}
        assert sites == {"b.example", "c.example"}

    async def test_what_is_not_there_can_be_forgotten(self, backend: Backend) -> None:
        await backend.frontier.forget("nothing")
        assert await backend.frontier.crawls() == []


UNKNOWN: dict[str, Callable[[Frontier], Awaitable[object]]] = {
    "lease": lambda f: f.lease(CRAWL, Ask("worker", 1)),
    "renew": lambda f: f.renew(CRAWL, []),
    "finish": lambda f: f.finish(CRAWL, []),
    "exchange": lambda f: f.exchange(CRAWL, [], Ask("worker", 1)),
    "robots": lambda f: f.robots(CRAWL, HOST),
    "beat": lambda f: f.beat(CRAWL, pulse()),
    "control": lambda f: f.control(CRAWL, Control.PAUSE),
    "holders": lambda f: f.holders(CRAWL),
    "release": lambda f: f.release(CRAWL, "worker"),
    "retry_dead": lambda f: f.retry_dead(CRAWL),
    "purge_dead": lambda f: f.purge_dead(CRAWL),
    "stats": lambda f: f.stats(CRAWL),
    "find": lambda f: f.find(CRAWL, entry("a.example/")),
    "find_others": lambda f: f.find_others(CRAWL, "a.example", bool, 1),
    "dead": lambda f: f.dead(CRAWL, 1),
    "leased": lambda f: f.leased(CRAWL, 1),
    "hosts": lambda f: f.hosts(CRAWL, 1),
    "traps": lambda f: f.traps(CRAWL, 1),
    "chains": lambda f: f.chains(CRAWL, 1),
    "workers": lambda f: f.workers(CRAWL),
    "lanes": lambda f: f.lanes(CRAWL, 1),
    "turn": lambda f: f.turn(CRAWL, HOST, None),
}


class TestUnknown:
    @pytest.mark.parametrize("method", UNKNOWN)
    async def test_a_crawl_that_is_not_there(self, backend: Backend, method: str) -> None:
        await backend.client(crawl="another").start()
        with pytest.raises(UnknownCrawl, match=CRAWL):
            await UNKNOWN[method](backend.frontier)

    @pytest.mark.parametrize("name", ["", ".", "..", "a\0b"])
    async def test_a_name_that_is_none(self, backend: Backend, name: str) -> None:
        for refused in (
            backend.frontier.start(name, Rules()),
            backend.frontier.add(name, pages(1)),
        ):
            with pytest.raises(ConfigError, match="cannot be named"):
                await refused
        assert name not in {stats.crawl for stats in await backend.frontier.crawls()}

    def test_no_method_is_left_out(self) -> None:
        exempt = {"start", "add", "remember", "forget", "crawls", "notes", "capabilities", "close"}
        of_all = {"put_pool", "pools", "exits", "accounts", "hold", "hold_on", "let_go"}
        assert set(UNKNOWN) | exempt | of_all == Frontier.__abstractmethods__
