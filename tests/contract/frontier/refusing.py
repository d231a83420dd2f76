"""When a 503 is taken as the page's fault, and when as the host's."""

from __future__ import annotations

import pytest

from contract.frontier.politeness import is_held_back
from shoal.core.policy import PUSHBACK_FIRST_S, REFUSALS_IN_A_ROW
from shoal.frontier.values import Holding, Lease, Outcome, Pushback, Verdict
from support.frontiers import A_MOMENT_S, HOST, Backend, Client, outcome, pages

BARE = Pushback(meant=False)


def unavailable(lease: Lease, retry_in_s: float = 600.0, pushback: Pushback = BARE) -> Outcome:
    """The outcome of a 503 without Retry-After."""
    how = {"fault": True, "blocked": True, "pushback": pushback}
    return outcome(lease, Verdict.RETRY, retry_in_s=retry_in_s, **how)


class TestUnavailable:
    """A 503 without Retry-After is the page's, until the host sends it for everything."""

    async def test_one_among_answers_is_its_pages(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(6 * 17), concurrency_per_host=16)
        for number in range(6 * 17):
            lease = await client.lease_one()
            if number % 17:
                await client.end(lease)
            else:
                await client.finish(unavailable(lease))
        host = await client.host()
        assert (host.penalty_s, host.failed) == (0.0, 6)
        assert (await client.stats()).delayed == 6

    async def test_nor_are_those_that_are_tried_again_last_of_all(self, backend: Backend) -> None:
        """At the end of a crawl only these are left, and all of them are refused again."""
        client = backend.client()
        await client.start(*pages(32), concurrency_per_host=16)
        for _ in range(16):
            refused, answered = await client.lease(2)
            await client.finish(unavailable(refused, 1.0), outcome(answered))
        await backend.advance(1.1)
        again = await client.lease(99)
        assert len(again) == 16
        await client.finish(*(unavailable(lease, 1.0) for lease in again))
        assert (await client.host()).penalty_s == 0.0
        await backend.advance(1.1)
        assert len(await client.lease(99)) == 16

    async def test_several_in_a_row_are_the_hosts(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(20))
        for _ in range(REFUSALS_IN_A_ROW):
            assert (await client.host()).penalty_s == 0.0
            await client.finish(unavailable(await client.lease_one()))
        assert await is_held_back(backend.another(), 0, PUSHBACK_FIRST_S)
        await backend.reopen()
        client = backend.client()
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        await client.finish(unavailable(await client.lease_one()))
        assert (await client.host()).penalty_s == 2 * PUSHBACK_FIRST_S, "it means it"

    async def test_then_also_those_that_are_tried_again(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(REFUSALS_IN_A_ROW))
        for _ in range(REFUSALS_IN_A_ROW):
            await client.finish(unavailable(await client.lease_one(), 1.0))
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        again = await client.lease_one()
        assert again.task.retry_count == 1
        await client.finish(unavailable(again))
        assert (await client.host()).penalty_s == 2 * PUSHBACK_FIRST_S

    async def test_all_that_is_in_flight_counts_at_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(99), concurrency_per_host=16)
        burst = await client.lease(16)
        assert len(burst) == 16
        await backend.advance(0.1)
        _, grant = await client.exchange(*map(unavailable, burst), limit=16)
        assert not grant.leases
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S, "a burst is one refusal"

    async def test_an_answer_in_between_begins_anew(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(40))
        for verdict in (Verdict.DONE, Verdict.DROPPED, Verdict.DEAD):
            for _ in range(REFUSALS_IN_A_ROW - 1):
                await client.finish(unavailable(await client.lease_one()))
            await client.end(await client.lease_one(), verdict)
        assert (await client.host()).penalty_s == 0.0

    @pytest.mark.parametrize("at_once", [1, 4, 16])
    async def test_a_host_that_refuses_everything_is_left_alone(
        self, backend: Backend, at_once: int
    ) -> None:
        """It gets no more requests than with 429, except for the few until it counts as the
        host's refusal."""
        sent = {}
        for meant in (True, False):
            client = backend.client(crawl=f"meant-{meant}")
            await client.start(*pages(60), concurrency_per_host=at_once, lease_s=3600.0)
            sent[meant] = await requests_in(900.0, backend, client, Pushback(meant=meant))
        assert sent[False] <= sent[True] + REFUSALS_IN_A_ROW - 1
        assert at_once < sent[True] < at_once + 15


async def requests_in(seconds: float, backend: Backend, client: Client, pushback: Pushback) -> int:
    """How many requests a host gets in `seconds` if it refuses all of them."""
    waited_s, sent = 0.0, 0
    while waited_s < seconds:
        while leases := await client.send(99, {HOST: Holding(in_flight=0, unsent=0)}):
            sent += len(leases)
            for lease in leases:
                await client.finish(unavailable(lease, 3600.0, pushback))
        wait_s = (await client.ask()).wait_s
        assert wait_s is not None
        await backend.advance(wait_s + A_MOMENT_S)
        waited_s += wait_s
    return sent
