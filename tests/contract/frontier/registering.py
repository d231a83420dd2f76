"""The workers of a crawl, and the seeds in its inbox."""

from __future__ import annotations

from msgspec.structs import replace

from shoal.errors import BadUrl
from shoal.frontier.values import WORKER_SILENT_S, Added, Entry
from support.frontiers import CRAWL, Backend, Client, pages, pulse


async def names(client: Client) -> list[str]:
    """The workers that are listed."""
    return [worker.worker for worker in await client.frontier.workers(client.crawl)]


class TestWorkers:
    async def test_are_listed_with_what_they_said(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        assert await client.frontier.workers(CRAWL) == []
        said = pulse(in_flight=3, pages=70, pages_per_s=2.5, rss_bytes=10**9)
        await client.frontier.beat(CRAWL, said)
        (heard,) = await backend.another().frontier.workers(CRAWL)
        assert heard.at > 0
        assert replace(heard, at=0.0) == said

    async def test_the_last_word_counts(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        moments = []
        for number in range(3):
            await client.frontier.beat(CRAWL, pulse(pages=number))
            (heard,) = await client.frontier.workers(CRAWL)
            assert heard.pages == number
            moments.append(heard.at)
            await backend.advance(1.0)
        assert moments == sorted(set(moments))

    async def test_are_listed_by_name(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        for worker in ("b:2", "a:10", "ä:1", "a:1"):
            await client.frontier.beat(CRAWL, pulse(worker))
        assert await names(client) == ["a:1", "a:10", "b:2", "ä:1"]

    async def test_silent_ones_are_not_listed(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.frontier.beat(CRAWL, pulse("silent"))
        await backend.advance(WORKER_SILENT_S - 1.0)
        await client.frontier.beat(CRAWL, pulse("alive"))
        assert await names(client) == ["alive", "silent"]
        await backend.advance(2.0)
        assert await names(client) == ["alive"]
        await client.frontier.beat(CRAWL, pulse("silent"))
        assert await names(client) == ["alive", "silent"]

    async def test_each_crawl_has_its_own(self, backend: Backend) -> None:
        one, two = backend.client(crawl="one"), backend.client(crawl="two")
        await one.start()
        await two.start()
        await one.frontier.beat("one", pulse("first"))
        await two.frontier.beat("two", pulse("second"))
        assert (await names(one), await names(two)) == (["first"], ["second"])

    async def test_are_forgotten_with_their_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        await client.frontier.beat(CRAWL, pulse())
        await client.frontier.forget(CRAWL)
        await client.start()
        assert await names(client) == []

    async def test_need_no_crawl_that_runs(self, backend: Backend) -> None:
        client = backend.client()
        await client.add(*pages(1))
        await client.frontier.beat(CRAWL, pulse())
        assert await names(client) == ["worker"]


class TestInbox:
    async def test_that_is_empty_gives_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        before = await client.snapshot()
        assert await client.frontier.beat(CRAWL, pulse()) is False
        assert await client.frontier.collect(CRAWL, _no_entry) == Added()
        assert await client.snapshot() == before
        assert (before.inbox, before.refused) == (0, 0)


def _no_entry(text: bytes) -> Entry:
    raise BadUrl(repr(text))
