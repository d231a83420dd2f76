"""A host's pace by its own answers: `rate = "auto"`, and probing a host that only fails."""

from __future__ import annotations

import pytest

from shoal.core.policy import (
    AUTO_FLOOR_S,
    AUTO_START_S,
    BREAKER_AFTER,
    BREAKER_PROBES,
    PROBE_FIRST_S,
    PROBE_LIMIT_S,
    PUSHBACK_FIRST_S,
)
from shoal.core.records import Robots
from shoal.frontier.values import Lease, Pushback, Verdict
from support.frontiers import A_MOMENT_S, HOST, Backend, Client, pages

SECOND_HOST = "b.example"


async def next_lease(backend: Backend, client: Client) -> Lease:
    """Wait until the host may be hit, and lease its next task."""
    grant = await client.ask()
    while not grant.leases:
        assert grant.wait_s is not None
        await backend.advance(grant.wait_s + A_MOMENT_S)
        grant = await client.ask()
    (lease,) = grant.leases
    return lease


async def wait_of(client: Client) -> float:
    """How long to wait for the next lease. Fails if there is one now."""
    grant = await client.ask(9)
    assert not grant.leases
    assert grant.wait_s is not None
    return grant.wait_s


async def pause_of(client: Client) -> float:
    """The host's penalty: its pause between two requests."""
    return (await client.host()).penalty_s


class TestAuto:
    async def answer(self, backend: Backend, client: Client, latency_s: float) -> None:
        await client.end(await next_lease(backend, client), latency_s=latency_s)

    async def refuse(self, backend: Backend, client: Client) -> None:
        lease = await next_lease(backend, client)
        await backend.advance(A_MOMENT_S)
        await client.end(lease, Verdict.DEAD, pushback=Pushback())

    async def test_a_host_that_has_not_answered_is_treated_with_care(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        await client.start(*pages(9), *pages(9, SECOND_HOST), rate="auto")
        leases = await client.lease(9)
        assert {lease.task.site for lease in leases} == {HOST, SECOND_HOST}
        assert len(leases) == 2
        assert all(lease.paced for lease in leases)
        assert AUTO_START_S / 2 < await wait_of(client) <= AUTO_START_S

    async def test_a_slow_answer_is_believed_at_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        await self.answer(backend, client, 4.0)
        assert await pause_of(client) == pytest.approx(4.0)
        await next_lease(backend, client)
        assert 3.9 < await wait_of(client) <= 4.0

    async def test_quicker_ones_step_by_step(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        pauses = []
        for latency_s in (4.0, 1.0, 1.0, 2.5):
            await self.answer(backend, client, latency_s)
            pauses.append(await pause_of(client))
        assert pauses == pytest.approx([4.0, 2.5, 1.75, 2.5])

    async def test_there_is_a_limit_to_haste(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(20), rate="auto")
        for _ in range(10):
            await self.answer(backend, client, 0.001)
        assert await pause_of(client) == pytest.approx(AUTO_FLOOR_S)
        assert (await next_lease(backend, client)).paced

    async def test_a_refusal_doubles_the_pause_and_it_recovers(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40), rate="auto")
        for _ in range(10):
            await self.answer(backend, client, 0.2)
        quick_s = await pause_of(client)
        assert quick_s == pytest.approx(0.2, abs=0.01)
        pauses = []
        for _ in range(3):
            await self.refuse(backend, client)
            pauses.append(await pause_of(client))
        first_s = max(2 * quick_s, PUSHBACK_FIRST_S)
        assert pauses == pytest.approx([first_s, 2 * first_s, 4 * first_s])
        for _ in range(10):
            await self.answer(backend, client, 0.2)
        assert await pause_of(client) == pytest.approx(quick_s, abs=0.01)

    async def test_answers_from_before_a_refusal_say_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        early = await next_lease(backend, client)
        await self.refuse(backend, client)
        refused_s = await pause_of(client)
        await client.end(early, latency_s=0.1)
        assert await pause_of(client) == refused_s

    async def test_what_was_no_page_says_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        await self.answer(backend, client, 4.0)
        for verdict in (Verdict.RETRY, Verdict.DEAD, Verdict.DROPPED, Verdict.RETURNED):
            lease = await next_lease(backend, client)
            await client.end(lease, verdict, latency_s=0.1, retry_in_s=600.0)
        assert await pause_of(client) == pytest.approx(4.0)

    async def test_a_page_that_the_spider_cannot_read_was_one(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        await self.answer(backend, client, 4.0)
        lease = await next_lease(backend, client)
        await client.end(lease, Verdict.DEAD, ours=True, latency_s=1.0)
        assert await pause_of(client) == pytest.approx(2.5)

    async def test_a_crawl_delay_that_is_longer_wins(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto", robots=True)
        robots = Robots(text="", ttl_s=3600.0, crawl_delay_s=20.0)
        await client.end(await client.lease_one(), Verdict.RETURNED, robots=robots)
        await self.answer(backend, client, 0.1)
        assert 19.0 < await wait_of(client) <= 20.2

    async def test_an_unused_slot_goes_back_though_the_pause_has_changed(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        slow = await next_lease(backend, client)
        unsent = await next_lease(backend, client)
        await client.end(slow, latency_s=5.0)
        await client.end(unsent, Verdict.RETURNED, sent=False)
        await client.lease_one()
        assert 4.0 < await wait_of(client) <= 5.0

    async def test_is_shared_and_survives_a_restart(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="auto")
        await self.answer(backend, client, 30.0)
        await next_lease(backend, client)
        assert 29.0 < await wait_of(backend.another()) <= 30.0
        await backend.reopen()
        assert 29.0 < await wait_of(backend.client()) <= 30.0


class TestLatency:
    async def test_is_averaged_and_recent_answers_count_most(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9))
        seen = []
        for latency_s in (1.0, 2.0, 0.0):
            await client.end(await client.lease_one(), latency_s=latency_s)
            seen.append((await client.host()).latency_s)
        assert seen == pytest.approx([1.0, 1.2, 1.2]), "one without an answer is not counted"


class TestBreaker:
    """A host that only fails is probed until it answers, or until it is given up."""

    async def fail(self, client: Client, lease: Lease) -> None:
        await client.end(lease, Verdict.DEAD, fault=True)

    async def fail_often(self, backend: Backend, client: Client, times: int) -> None:
        for _ in range(times):
            await self.fail(client, await next_lease(backend, client))

    async def test_pages_that_fail_again_do_not_open_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        for _ in range(BREAKER_AFTER):
            for lease in await client.lease(2):
                await client.end(lease, Verdict.RETRY, fault=True)
        assert (await client.host()).failures == 2

    async def test_opens_after_so_many_failures_in_a_row(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40))
        await self.fail_often(backend, client, BREAKER_AFTER - 1)
        host = await client.host()
        assert (host.failures, host.is_broken) == (BREAKER_AFTER - 1, False)
        await self.fail(client, await client.lease_one())
        host = await client.host()
        assert (host.failures, host.is_broken) == (BREAKER_AFTER, True)
        assert PROBE_FIRST_S / 2 < await wait_of(client) <= PROBE_FIRST_S

    async def test_any_answer_in_between_begins_anew(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40))
        for verdict in (Verdict.DONE, Verdict.DROPPED, Verdict.DEAD, Verdict.RETRY):
            await self.fail_often(backend, client, BREAKER_AFTER - 1)
            await client.end(await client.lease_one(), verdict, retry_in_s=3600.0)
            assert (await client.host()).failures == 0

    async def test_what_was_not_asked_for_is_no_answer(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40))
        await self.fail_often(backend, client, 3)
        await client.end(await client.lease_one(), Verdict.RETURNED)
        await client.end(await client.lease_one(), Verdict.RETURNED, sent=False)
        await client.end(await client.lease_one(), Verdict.DROPPED, sent=False)
        assert (await client.host()).failures == 3

    async def test_then_one_request_at_a_time(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(40), concurrency_per_host=8, lease_s=600.0)
        assert len(await client.lease(3)) == 3
        await client.frontier.release(client.crawl, client.worker)
        await self.fail_often(backend, client, BREAKER_AFTER)
        await backend.advance(PROBE_FIRST_S + A_MOMENT_S)
        await client.lease_one(9)
        assert await other.lease(9) == []
        await backend.advance(PROBE_LIMIT_S)
        assert await other.lease(9) == [], "not while the probe is under way"

    async def test_the_waits_double_up_to_a_limit(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40))
        await self.fail_often(backend, client, BREAKER_AFTER)
        waits = []
        for _ in range(BREAKER_PROBES - 1):
            waits.append(await wait_of(client))
            await self.fail(client, await next_lease(backend, client))
        expected = [min(PROBE_FIRST_S * 2**n, PROBE_LIMIT_S) for n in range(BREAKER_PROBES - 1)]
        assert waits == pytest.approx(expected, abs=0.5)
        assert expected[-1] == PROBE_LIMIT_S

    async def test_a_burst_counts_once_when_it_is_open(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40), concurrency_per_host=8)
        await self.fail_often(backend, client, BREAKER_AFTER - 1)
        burst = await client.lease(5)
        for lease in burst:
            await backend.advance(A_MOMENT_S)
            await self.fail(client, lease)
        assert (await client.host()).failures == BREAKER_AFTER
        assert await wait_of(client) <= PROBE_FIRST_S

    async def test_a_success_closes_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40), concurrency_per_host=8)
        await self.fail_often(backend, client, BREAKER_AFTER + 2)
        await client.end(await next_lease(backend, client))
        host = await client.host()
        assert (host.failures, host.is_broken) == (0, False)
        assert len(await client.send(9)) == 8

    async def test_a_host_that_stays_away_is_given_up(self, backend: Backend) -> None:
        """Then its tasks can die, and the crawl can finish."""
        client = backend.client()
        await client.start(*pages(60), concurrency_per_host=8)
        await self.fail_often(backend, client, BREAKER_AFTER + BREAKER_PROBES)
        host = await client.host()
        assert (host.failures, host.is_broken) == (BREAKER_AFTER + BREAKER_PROBES, False)
        leases = await client.send(9)
        assert len(leases) == 8
        for lease in leases:
            await self.fail(client, lease)
        assert len(await client.send(9)) == 8

    async def test_other_hosts_notice_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(BREAKER_AFTER + 5), concurrency_per_host=4)
        await self.fail_often(backend, client, BREAKER_AFTER)
        await client.add(*pages(9, SECOND_HOST))
        leases = await client.send(9)
        assert [lease.task.site for lease in leases] == [SECOND_HOST] * 4

    async def test_holds_for_everybody_and_after_a_restart(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40))
        await self.fail_often(backend, client, BREAKER_AFTER + 5)
        assert PROBE_LIMIT_S / 2 < await wait_of(backend.another()) <= PROBE_LIMIT_S
        await backend.reopen()
        client = backend.client()
        assert (await client.host()).is_broken
        assert PROBE_LIMIT_S / 2 < await wait_of(client) <= PROBE_LIMIT_S

    async def test_a_rate_holds_beside_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40), rate="1/h", lease_s=7200.0)
        await self.fail_often(backend, client, BREAKER_AFTER)
        assert 3000 < await wait_of(client) <= 3601
