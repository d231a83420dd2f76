"""`exchange`: finish, then lease, as one step."""

from __future__ import annotations

from shoal.frontier.values import Control, CrawlState, Entry, Lease, TaskState, Verdict
from support.frontiers import A_MOMENT_S, HOST, Backend, entry, outcome, pages


def keys_of(*tasks: Entry | Lease) -> list[bytes]:
    return [task.fingerprint for task in tasks]


class TestExchange:
    async def test_ends_tries_and_hands_out_the_next(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        first = await client.lease_one()
        stale, grant = await client.exchange(outcome(first), limit=1)
        assert stale == []
        (second,) = grant.leases
        assert second.fingerprint != first.fingerprint
        stats = await client.stats()
        assert (stats.done, stats.leased, stats.waiting) == (1, 1, 1)

    async def test_hands_out_what_was_just_found(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        found = outcome(await client.lease_one(), follow_ups=[entry("b.example/new")])
        _, grant = await client.exchange(found, limit=5)
        assert [lease.task.site for lease in grant.leases] == ["b.example"]
        assert grant.state is CrawlState.RUNNING

    async def test_hands_out_what_was_given_back(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        _, grant = await client.exchange(outcome(lease, Verdict.RETURNED, sent=False), limit=1)
        (again,) = grant.leases
        assert (again.fingerprint, again.token == lease.token) == (lease.fingerprint, False)

    async def test_a_host_that_said_wait_is_not_hit(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), rate="1/m")
        _, grant = await client.exchange(outcome(await client.lease_one()), limit=5)
        assert grant.leases == []
        assert grant.wait_s is not None
        assert 0 < grant.wait_s <= 66
        assert grant.has_waiting, "but may not be sent yet"
        assert (await client.ask(5)).has_waiting

    async def test_what_others_have_does_not_wait(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        lease = await client.lease_one()
        assert len((await client.ask(5)).leases) == 1
        _, grant = await client.exchange(outcome(lease), limit=5)
        assert (grant.leases, grant.has_waiting) == ([], False)
        assert not (await client.ask(5)).has_waiting

    async def test_stale_leases_are_told_and_the_next_come_all_the_same(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        await client.start(*pages(2))
        lease = await client.lease_one()
        await client.end(lease)
        stale, grant = await client.exchange(outcome(lease), limit=5)
        assert stale == [lease]
        assert len(grant.leases) == 1

    async def test_the_last_page_ends_the_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.control(Control.SEAL)
        _, grant = await client.exchange(outcome(await client.lease_one()), limit=5)
        assert (grant.state, grant.leases) == (CrawlState.FINISHED, [])

    async def test_a_crawl_that_pauses_hands_out_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        lease = await client.lease_one()
        await client.control(Control.PAUSE)
        _, grant = await client.exchange(outcome(lease), limit=5)
        assert (grant.state, grant.leases) == (CrawlState.PAUSED, [])
        assert await client.state(lease) is TaskState.DONE

    async def test_nor_is_there_anything_to_wait_for(self, backend: Backend) -> None:
        """While the crawl is paused, only `resume` can change that."""
        client = backend.client()
        await client.start(*pages(2))
        lease = await client.lease_one()
        await client.control(Control.PAUSE)
        _, grant = await client.exchange(outcome(lease, Verdict.RETRY, retry_in_s=5.0), limit=5)
        assert grant.wait_s is None

    async def test_no_more_than_max_pages(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(5), max_pages=2)
        _, grant = await client.exchange(outcome(await client.lease_one()), limit=5)
        assert len(grant.leases) == 1

    async def test_a_chain_goes_on_before_a_wait_is_over(self, backend: Backend) -> None:
        """The order is the same as with two calls: finishing releases the next task of a chain;
        then leasing puts tasks whose delay is over behind all that wait."""
        client = backend.client()
        step, next_step = (entry(f"{HOST}/{n}", chain="chain") for n in range(2))
        await client.start(retried := entry(f"{HOST}/retried"), step, next_step)
        first, second = await client.lease(2)
        assert keys_of(first, second) == keys_of(retried, step)
        ended = outcome(first, Verdict.RETRY), outcome(second)
        _, grant = await client.exchange(*ended, limit=2)
        assert keys_of(*grant.leases) == keys_of(next_step, retried)

    async def test_one_that_ends_the_crawl_moves_nothing_else(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), max_pages=1)
        await client.control(Control.SEAL)
        retried = await client.lease_one()
        await client.end(retried, Verdict.RETRY, retry_in_s=5.0)
        last = await client.lease_one()
        await backend.advance(5.0 + A_MOMENT_S)
        _, grant = await client.exchange(outcome(last), limit=5)
        assert (grant.state, grant.leases) == (CrawlState.FINISHED, [])
        assert await client.state(retried) is TaskState.DELAYED, "the crawl was over"
