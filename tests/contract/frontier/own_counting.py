"""A spider's own counters: added once, when a task ends, under a bounded number of names."""

from __future__ import annotations

from shoal.core.own_counts import MAX_COUNT, MAX_NAMES, OTHERS
from shoal.frontier.values import Verdict
from support.frontiers import CRAWL, Backend, outcome, pages


class TestOwnCounts:
    async def test_they_add_up_with_the_ends_of_tasks(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), concurrency_per_host=3)
        assert (await client.stats()).own_counts == {}
        first, second, third = await client.lease(3)
        ended = outcome(first, own_counts={"sold_out": 1, "price": 3})
        await client.finish(ended, outcome(second, own_counts={"sold_out": 2}))
        assert await client.finish(ended) == [first], "a second time it is nobody's"
        await client.end(third, Verdict.DEAD, own_counts={"z": MAX_COUNT})
        counted = {"price": 3, "sold_out": 3, "z": MAX_COUNT}
        assert (await client.stats()).own_counts == counted
        await backend.reopen()
        client = backend.client()
        assert (await client.stats()).own_counts == counted
        assert list((await client.stats()).own_counts) == sorted(counted)

    async def test_names_too_many_are_added_up(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), concurrency_per_host=3)
        first, second, third = await client.lease(3)
        await client.end(first, own_counts={f"n{number:03}": 1 for number in range(MAX_NAMES)})
        await client.end(second, own_counts={f"m{number:03}": 2 for number in range(MAX_NAMES)})
        await client.end(third, own_counts={"n001": 5, "m001": 7})
        counted = (await client.stats()).own_counts
        assert len(counted) == MAX_NAMES + 1
        assert sum(counted.values()) == 3 * MAX_NAMES + 12
        assert counted[OTHERS] >= 2 * MAX_NAMES

    async def test_they_are_those_of_one_crawl(self, backend: Backend) -> None:
        client, other = backend.client(), backend.client(crawl="other")
        for each in (client, other):
            await each.start(*pages(1))
        await client.end(await client.lease_one(), own_counts={"a": 1})
        assert (await other.stats()).own_counts == {}
        await client.frontier.forget(CRAWL)
        await client.start(*pages(1))
        assert (await client.stats()).own_counts == {}
