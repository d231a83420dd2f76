"""The order within a priority: returned tasks, then new ones, then retries."""

from __future__ import annotations

from shoal.frontier.values import Lease, Verdict
from support.frontiers import A_MOMENT_S, Backend, Client, entry, pages


async def order_of(client: Client, count: int) -> list[str]:
    """Lease `count` tasks one by one. Returns the last parts of their URLs."""
    return [_path(await client.lease_one()) for _ in range(count)]


async def lease_named(client: Client, path: str) -> Lease:
    lease = await client.lease_one()
    assert _path(lease) == path
    return lease


def _path(lease: Lease) -> str:
    return lease.task.url.rpartition("/")[2]


class TestOrder:
    async def test_what_is_given_back_goes_to_the_front(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(4))
        first = await lease_named(client, "0")
        await lease_named(client, "1")
        await client.end(first, Verdict.RETURNED)
        assert await order_of(client, 3) == ["0", "2", "3"]

    async def test_what_was_taken_from_a_dead_worker_too(self, backend: Backend) -> None:
        client, dead = backend.client(), backend.another("dead")
        await client.start(*pages(3))
        await lease_named(dead, "0")
        await client.frontier.release(client.crawl, "dead")
        assert await order_of(client, 3) == ["0", "1", "2"]

    async def test_what_expired_too(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(4), lease_s=2.0)
        await client.lease(2)
        await backend.advance(2.1)
        assert sorted(await order_of(client, 2)) == ["0", "1"]
        assert await order_of(client, 2) == ["2", "3"]

    async def test_all_that_came_back_precedes_all_that_waits(self, backend: Backend) -> None:
        client, dead = backend.client(), backend.another("dead")
        await client.start(*pages(6))
        returned = await client.lease(2)
        await dead.lease(2)
        await client.frontier.release(client.crawl, "dead")
        for lease in returned:
            await client.end(lease, Verdict.RETURNED)
        assert sorted(await order_of(client, 4)) == ["0", "1", "2", "3"]
        assert await order_of(client, 2) == ["4", "5"]

    async def test_what_came_back_keeps_its_priority(self, backend: Backend) -> None:
        backend.needs("strict_priorities")
        client = backend.client()
        await client.start(entry("a.example/low"))
        low = await lease_named(client, "low")
        await client.add(entry("a.example/high", priority=1))
        await client.end(low, Verdict.RETURNED)
        assert await order_of(client, 2) == ["high", "low"]

    async def test_a_retry_goes_behind_what_waits_when_it_wakes(self, backend: Backend) -> None:
        """Retries never starve new work."""
        backend.needs("whole_backlog")
        client = backend.client()
        await client.start(*pages(2))
        failed = await lease_named(client, "0")
        await client.end(failed, Verdict.RETRY, retry_in_s=1.0)
        await client.add(entry("a.example/early"))
        await backend.advance(1.1)
        await lease_named(client, "1")
        await client.add(entry("a.example/late"))
        assert await order_of(client, 3) == ["early", "0", "late"]

    async def test_a_retry_keeps_its_priority(self, backend: Backend) -> None:
        backend.needs("strict_priorities")
        client = backend.client()
        await client.start(*pages(2), entry("a.example/high", priority=1))
        await client.end(await lease_named(client, "high"), Verdict.RETRY)
        await backend.advance(A_MOMENT_S)
        assert await order_of(client, 3) == ["high", "0", "1"]

    async def test_retries_wake_in_the_order_they_are_due(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        for lease, wait_s in zip(await client.lease(3), (3.0, 1.0, 2.0), strict=True):
            await client.end(lease, Verdict.RETRY, retry_in_s=wait_s)
        await backend.advance(3.1)
        assert await order_of(client, 3) == ["1", "2", "0"]

    async def test_a_retry_that_is_given_back_goes_to_the_front(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.end(await client.lease_one(), Verdict.RETRY)
        await backend.advance(A_MOMENT_S)
        again = await lease_named(client, "0")
        await client.add(entry("a.example/new"))
        await client.end(again, Verdict.RETURNED)
        assert await order_of(client, 2) == ["0", "new"]

    async def test_what_was_dead_goes_behind_all(self, backend: Backend) -> None:
        backend.needs("whole_backlog")
        client = backend.client()
        await client.start(*pages(3))
        await client.end(await lease_named(client, "0"), Verdict.DEAD)
        assert await client.frontier.retry_dead(client.crawl) == 1
        await client.add(entry("a.example/late"))
        assert await order_of(client, 4) == ["1", "2", "0", "late"]
