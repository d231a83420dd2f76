"""Steps with more than ten thousand of anything: none is lost, and none stays behind."""

from __future__ import annotations

import pytest

from shoal.frontier.values import Control, CrawlState, DeadFilter, Entry, Lease, Verdict
from support.frontiers import CRAWL, HOST, Backend, Client, entry, outcome, pages

MANY = 10_500
"""More values than fit on the stack of a Lua script."""

AT_ONCE = 1_000


async def lease_all(client: Client) -> list[Lease]:
    """Lease until nothing is left."""
    leased = list[Lease]()
    while some := await client.lease(AT_ONCE):
        leased += some
    return leased


def of_many_priorities(first: int, step: int) -> list[Entry]:
    """`MANY` pages of different priorities, rising or falling with their position."""
    return [entry(f"{HOST}/{n}", priority=first + n * step) for n in range(MANY)]


class TestManyPriorities:
    """A page whose handler says `priority=-position` makes as many queues as it has links."""

    @pytest.mark.parametrize(("first", "step"), [(0, -1), (-MANY, 1)], ids=["falling", "rising"])
    async def test_all_are_handed_out_in_their_order(
        self, backend: Backend, first: int, step: int
    ) -> None:
        backend.needs("strict_priorities")
        client = backend.client()
        await client.start(concurrency_per_host=MANY)
        entries = of_many_priorities(first, step)
        assert (await client.add(*entries)).added == MANY
        assert (await client.add(*entries[:3])).duplicates == 3
        await client.control(Control.SEAL)
        found = await client.record(entries[MANY // 2])
        assert found.task.priority == entries[MANY // 2].task.priority
        leases = await lease_all(client)
        wanted = sorted((each.task.priority for each in entries), reverse=True)
        assert [lease.task.priority for lease in leases] == wanted
        await client.finish(*map(outcome, leases))
        stats = await client.stats()
        assert (stats.done, stats.state) == (MANY, CrawlState.FINISHED)

    async def test_as_follow_ups_and_back_again(self, backend: Backend) -> None:
        """They are found on one page. Half of them are leased twice: returned, or retried."""
        client = backend.client()
        await client.start(entry(f"{HOST}/start"), concurrency_per_host=2 * MANY)
        await client.control(Control.SEAL)
        start = await client.lease_one()
        await client.end(start, follow_ups=of_many_priorities(7, -1))
        ends = [Verdict.DONE, Verdict.RETURNED, Verdict.RETRY, Verdict.DEAD]
        leases = await lease_all(client)
        assert len(leases) == MANY
        await client.finish(*(outcome(at, ends[n % 4]) for n, at in enumerate(leases)))
        assert await client.frontier.retry_dead(CRAWL) == MANY // 4
        await backend.advance(1.0)
        leases = await lease_all(client)
        assert len(leases) == MANY - (MANY + 3) // 4
        await client.finish(*map(outcome, leases))
        stats = await client.stats()
        assert (stats.done, stats.state) == (MANY + 1, CrawlState.FINISHED)

    async def test_new_ones_among_those_that_wait(self, backend: Backend) -> None:
        """While tasks are added and leased in turns, the highest priority is always next."""
        backend.needs("strict_priorities")
        client = backend.client()
        await client.start(concurrency_per_host=1_000)
        numbers = [(n * 7_919) % 900 for n in range(900)]
        waiting = list[int]()
        for start in range(0, 900, 90):
            some = numbers[start : start + 90]
            await client.add(*(entry(f"{HOST}/{n}", priority=n) for n in some))
            waiting = sorted([*waiting, *some])
            best = [waiting.pop() for _ in range(50)]
            assert [lease.task.priority for lease in await client.lease(50)] == best
        assert [lease.task.priority for lease in await lease_all(client)] == waiting[::-1]

    async def test_nothing_is_left_of_a_crawl_that_is_forgotten(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*of_many_priorities(0, 1)[:2_000])
        await client.frontier.forget(CRAWL)
        await client.start(*of_many_priorities(0, 1)[:5], concurrency_per_host=99)
        assert len(await lease_all(client)) == 5


class TestManyLeases:
    async def test_of_one_worker(self, backend: Backend) -> None:
        """One call each renews, finishes or releases all leases."""
        client = backend.client()
        await client.start(*pages(MANY), concurrency_per_host=MANY, max_losses=9)
        leases = await lease_all(client)
        assert len(leases) == MANY
        assert await client.renew(*leases) == []
        assert await client.frontier.release(CRAWL, client.worker) == MANY
        assert await client.renew(*leases) == leases
        assert await client.finish(*map(outcome, leases)) == leases
        again = await lease_all(client)
        assert await client.finish(*map(outcome, again)) == []
        assert (await client.stats()).done == MANY

    async def test_of_as_many_hosts(self, backend: Backend) -> None:
        client = backend.client()
        entries = [entry(f"h{n}.example/", chain=f"c{n}" if n % 2 else None) for n in range(MANY)]
        await client.start(entry(f"{HOST}/start"))
        await client.end(await client.lease_one(), follow_ups=entries)
        leases = await lease_all(client)
        assert len(leases) == MANY
        await client.finish(*(outcome(lease, Verdict.DEAD, reason="bad") for lease in leases))
        assert len(await client.frontier.dead(CRAWL, 2 * MANY)) == MANY
        keys = [each.fingerprint for each in entries]
        assert await client.frontier.retry_dead(CRAWL, DeadFilter(fingerprints=keys)) == MANY
        leases = await lease_all(client)
        await client.finish(*(outcome(lease, Verdict.DEAD, reason="bad") for lease in leases))
        assert await client.frontier.purge_dead(CRAWL, DeadFilter(fingerprints=keys)) == MANY
        assert (await client.stats()).dropped == MANY

    async def test_remembered(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        entries = pages(MANY)
        await client.frontier.remember(CRAWL, [each.fingerprint for each in entries])
        assert (await client.add(*entries)).duplicates == MANY
