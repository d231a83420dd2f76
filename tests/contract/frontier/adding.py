"""Adding tasks, and starting the crawl they belong to."""

from __future__ import annotations

import pytest

from shoal.errors import ConfigError
from shoal.frontier.values import Added, Control, CrawlState, Entry, Lease
from support.frontiers import A_MOMENT_S, CRAWL, Backend, entry, open_rules, outcome, pages
from support.until import until


class TestAdd:
    async def test_counts_what_is_new_and_what_is_not(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        assert await client.add(*pages(3)) == Added(added=3, duplicates=0)
        assert await client.add(*pages(5)) == Added(added=2, duplicates=3)
        stats = await client.stats()
        assert (stats.added, stats.duplicates, stats.waiting) == (5, 3, 5)

    async def test_a_batch_is_deduplicated_and_the_first_one_counts(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        first, again = entry("a.example/", meta={"n": 1}), entry("a.example/", meta={"n": 2})
        assert await client.add(first, again, again) == Added(added=1, duplicates=2)
        assert (await client.record(first)).task.meta == {"n": 1}

    async def test_is_deduplicated_across_clients(self, backend: Backend) -> None:
        one, two = backend.client(), backend.another()
        await one.start(*pages(2))
        assert await two.add(*pages(3)) == Added(added=1, duplicates=2)

    async def test_what_has_ended_is_still_seen(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        await client.work_off()
        assert await client.add(*pages(3)) == Added(added=0, duplicates=3)
        assert await client.lease() == []

    async def test_an_empty_batch_changes_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        before = await client.snapshot()
        assert await client.add() == Added()
        assert await client.snapshot() == before

    async def test_every_fingerprint_can_be_added_and_found(self, backend: Backend) -> None:
        client = backend.client()
        keys = ["00" * 8, "ff" * 8, "80" + "00" * 7, "7f" + "ff" * 7]
        entries = [Entry(bytes.fromhex(key), entry(f"a.example/{key}").task) for key in keys]
        await client.start(*entries)
        assert await client.add(*entries) == Added(duplicates=4)
        assert [(await client.record(e)).task.url for e in entries] == [e.task.url for e in entries]
        leased = await client.lease(4)
        assert {lease.fingerprint for lease in leased} == {e.fingerprint for e in entries}
        assert await client.finish(*map(outcome, leased)) == []

    async def test_a_task_comes_back_as_it_was_given(self, backend: Backend) -> None:
        client = backend.client()
        given = entry(
            "a.example/x",
            job_type="product",
            method="POST",
            headers={"Accept": "text/html"},
            body="q=ä",
            depth=3,
            max_retries=7,
            meta={"list": [1, None, "ü"]},
            parent="00" * 8,
        )
        await client.start(given)
        assert (await client.lease_one()).task == given.task
        assert (await client.record(given)).task == given.task

    async def test_a_batch_that_cannot_be_stored_leaves_no_trace(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        unstorable = entry("b.example/1", meta={"not": object()})
        with pytest.raises(TypeError):
            await client.add(entry("a.example/1"), unstorable)
        assert (await client.stats()).added == 0
        assert await backend.another().add(entry("c.example/1")) == Added(added=1)
        assert await client.add(entry("a.example/1"), entry("b.example/2")) == Added(added=2)
        assert {lease.task.site for lease in await client.lease(9)} == {
            "a.example",
            "b.example",
            "c.example",
        }


class TestAddByState:
    async def test_a_crawl_nobody_started_keeps_its_seeds(self, backend: Backend) -> None:
        client = backend.client()
        assert await client.add(*pages(2)) == Added(added=2)
        stats = await client.stats()
        assert (stats.state, stats.waiting, stats.started_at) == (CrawlState.NEW, 2, None)
        grant = await backend.another().ask()
        assert (grant.state, grant.leases, grant.wait_s) == (CrawlState.NEW, [], None)
        stats = await client.start()
        assert (stats.state, stats.waiting) == (CrawlState.RUNNING, 2)
        leases = list[Lease]()

        async def has_all() -> bool:  # One of them may still be on its way from a carrier.
            leases.extend(await client.lease(5))
            return len(leases) == 2

        await until("both seeds", has_all)

    async def test_a_finished_crawl_runs_again_and_finishes_again(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        assert await client.control(Control.SEAL) is CrawlState.FINISHED
        await client.add(entry("a.example/"))
        stats = await client.stats()
        assert (stats.state, stats.finished_at) == (CrawlState.RUNNING, None)
        assert await client.work_off() == 1
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_duplicates_do_not_wake_a_finished_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.control(Control.SEAL)
        await client.work_off()
        before = await client.stats()
        await backend.advance(A_MOMENT_S)
        await client.add(*pages(1))
        after = await client.stats()
        assert after.state is CrawlState.FINISHED
        assert after.finished_at == before.finished_at

    async def test_a_cancelled_crawl_takes_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.CANCEL)
        with pytest.raises(ConfigError, match=CRAWL):
            await client.add(*pages(1))
        assert (await client.stats()).added == 0

    async def test_a_paused_crawl_takes_work_and_stays_paused(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.PAUSE)
        await client.add(*pages(1))
        stats = await client.stats()
        assert (stats.state, stats.waiting) == (CrawlState.PAUSED, 1)


class TestStart:
    async def test_makes_a_crawl_that_runs(self, backend: Backend) -> None:
        stats = await backend.client().start(max_pages=7)
        assert stats.crawl == CRAWL
        assert stats.state is CrawlState.RUNNING
        assert stats.rules == open_rules(max_pages=7)
        assert stats.created_at == stats.started_at

    async def test_joins_a_running_crawl_and_brings_its_rules(self, backend: Backend) -> None:
        client = backend.client()
        first = await client.start(*pages(2))
        await backend.advance(A_MOMENT_S)
        joined = await backend.another().start(max_retries=9)
        assert (joined.started_at, joined.waiting) == (first.started_at, 2)
        assert (await client.stats()).rules.max_retries == 9

    async def test_a_paused_crawl_stays_paused(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.PAUSE)
        assert (await client.start()).state is CrawlState.PAUSED

    async def test_joining_a_sealed_crawl_keeps_its_seal(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.control(Control.SEAL)
        await client.start()
        await client.work_off()
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_a_finished_crawl_runs_again_unsealed(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.SEAL)
        stats = await client.start(*pages(1))
        assert (stats.state, stats.finished_at) == (CrawlState.RUNNING, None)
        await client.work_off()
        assert (await client.stats()).state is CrawlState.RUNNING

    @pytest.mark.parametrize("end", [Control.SEAL, Control.CANCEL])
    async def test_one_that_is_over_stays_so_unless_it_is_to_run_again(
        self, backend: Backend, end: Control
    ) -> None:
        client = backend.client()
        await client.start()
        over = await client.control(end)
        rules = open_rules(max_retries=9)
        stats = await client.frontier.start(CRAWL, rules, again=False)
        assert stats.state is over
        assert stats.rules == open_rules()

    async def test_one_that_is_not_over_is_joined_either_way(self, backend: Backend) -> None:
        client = backend.client()
        assert await client.frontier.start(CRAWL, open_rules(), again=False)
        await client.add(*pages(2))
        stats = await client.frontier.start(CRAWL, open_rules(max_retries=9), again=False)
        assert (stats.state, stats.waiting) == (CrawlState.RUNNING, 2)
        assert stats.rules.max_retries == 9

    @pytest.mark.parametrize("rules", [{"seen": "bloom"}, {"seen_for": "7d"}])
    async def test_bounds_what_is_known_or_refuses_to(
        self, backend: Backend, rules: dict[str, str]
    ) -> None:
        client = backend.client()
        if backend.frontier.capabilities.bounded_seen:
            assert (await client.start(**rules)).rules == open_rules(**rules)
            return
        with pytest.raises(ConfigError, match=next(iter(rules))):
            await client.start(**rules)
        assert await client.frontier.crawls() == []

    async def test_a_cancelled_crawl_cannot_be_started(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.CANCEL)
        with pytest.raises(ConfigError, match=CRAWL):
            await client.start()
        assert (await client.stats()).state is CrawlState.CANCELLED
