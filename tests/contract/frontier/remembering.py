"""Fingerprints of pages that were done elsewhere: they are known, without being tasks."""

from __future__ import annotations

import pytest

from shoal.errors import ConfigError
from shoal.frontier.values import Added, Control, CrawlState, Entry, TaskState
from support.frontiers import CRAWL, Backend, entry, pages

EVERY_SIGN = [bytes.fromhex(key) for key in ("00" * 8, "ff" * 8, "80" + "00" * 7, "7f" + "ff" * 7)]


class TestRemember:
    async def test_what_is_remembered_is_a_duplicate_on_every_host(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        before = [*pages(3), *pages(3, "b.example"), *pages(3, "c.example")]
        await client.frontier.remember(CRAWL, [e.fingerprint for e in before])
        assert await client.add(*before, entry("a.example/new")) == Added(added=1, duplicates=9)
        follow_up = await client.lease_one()
        await client.end(follow_up, follow_ups=before)
        assert await client.lease(9) == []

    async def test_is_counted_nowhere(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        before = await client.snapshot()
        await client.frontier.remember(CRAWL, EVERY_SIGN)
        assert await client.snapshot() == before
        assert await client.control(Control.SEAL) is CrawlState.FINISHED

    async def test_twice_is_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        for fingerprints in (EVERY_SIGN + EVERY_SIGN, EVERY_SIGN, []):
            await client.frontier.remember(CRAWL, fingerprints)
        again = [Entry(key, entry(f"a.example/{key.hex()}").task) for key in EVERY_SIGN]
        assert await client.add(*again) == Added(duplicates=4)

    async def test_a_task_stays_a_task(self, backend: Backend) -> None:
        client = backend.client()
        waiting, leased = pages(2)
        await client.start(leased)
        lease = await client.lease_one()
        await client.add(waiting)
        keys = [waiting.fingerprint, leased.fingerprint]
        await client.frontier.remember(CRAWL, keys)
        await client.end(lease)
        assert await client.work_off() == 1

    async def test_is_done_to_those_who_ask(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        done = entry("a.example/done")
        await client.frontier.remember(CRAWL, [done.fingerprint])
        record = await client.record(done)
        assert (record.state, record.task.url) == (TaskState.DONE, done.task.url)
        assert record.is_forgotten

    async def test_is_of_its_crawl_and_forgotten_with_it(self, backend: Backend) -> None:
        client, other = backend.client(), backend.client(crawl="other")
        await client.start()
        await other.start()
        known = pages(2)
        await client.frontier.remember(CRAWL, [e.fingerprint for e in known])
        assert await other.add(*known) == Added(added=2)
        await client.frontier.forget(CRAWL)
        await client.start()
        assert await client.add(*known) == Added(added=2)

    async def test_a_crawl_that_nobody_started_is_made(self, backend: Backend) -> None:
        client = backend.client()
        known = pages(1)
        await client.frontier.remember(CRAWL, [known[0].fingerprint])
        assert (await client.stats()).state is CrawlState.NEW
        await client.start()
        assert await client.add(*known) == Added(duplicates=1)

    async def test_a_finished_crawl_stays_finished_and_a_cancelled_one_refuses(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        await client.start()
        await client.control(Control.SEAL)
        await client.frontier.remember(CRAWL, EVERY_SIGN)
        assert (await client.stats()).state is CrawlState.FINISHED
        await client.start()
        await client.control(Control.CANCEL)
        with pytest.raises(ConfigError, match="cancelled"):
            await client.frontier.remember(CRAWL, EVERY_SIGN)
