"""How often a host may be hit: its rate, robots.txt, Retry-After, and unused slots."""

from __future__ import annotations

import pytest

from shoal.core.policy import PUSHBACK_FIRST_S, SEND_SLACK_S
from shoal.core.records import Robots
from shoal.frontier.values import Lease, Pushback, Verdict
from support.frontiers import ALLOW_ALL, HOST, Backend, Client, outcome, pages


async def refuse(client: Client, lease: Lease, retry_after_s: float | None = None) -> None:
    """The host answers 429. The task comes back much later."""
    pushback = Pushback(retry_after_s=retry_after_s)
    await client.end(lease, Verdict.RETRY, retry_in_s=600.0, pushback=pushback)


async def is_held_back(client: Client, at_least_s: float, at_most_s: float) -> bool:
    """Whether there is no lease, and the wait is within these limits."""
    grant = await client.ask(9)
    return not grant.leases and at_least_s < (grant.wait_s or 0.0) <= at_most_s


class TestRate:
    async def test_holds_in_every_window_and_is_made_use_of(self, backend: Backend) -> None:
        """Four greedy clients, two hosts, 5/s: never a sixth request within a second."""
        count, lease_s = 5, 60.0
        fleet = [backend.client(), *(backend.another(f"worker-{n}") for n in range(3))]
        await fleet[0].start(*pages(60), *pages(60, "b.example"), rate="5/s", lease_s=lease_s)
        granted: dict[str, list[float]] = {HOST: [], "b.example": []}
        for turn in range(4 * 150):
            client = fleet[turn % 4]
            for lease in await client.lease(4):
                # The time of the grant by the frontier's own clock.
                due = (await client.record(lease)).due or 0.0
                granted[lease.task.site].append(due - lease_s)
                await client.end(lease)
            if turn % 4 == 3:
                await backend.advance(0.02)
        for moments in granted.values():
            spans = [late - early for early, late in zip(moments, moments[count:], strict=False)]
            # A request may leave up to SEND_SLACK_S after its grant.
            assert min(spans) >= 1.0 + SEND_SLACK_S - 1e-6
            assert (len(moments) - 1) / (moments[-1] - moments[0]) >= count / 1.3

    async def test_is_kept_for_each_host_by_itself(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), *pages(3, "b.example"), rate="1/h")
        leases = await client.lease(9)
        assert {lease.task.site for lease in leases} == {HOST, "b.example"}
        assert all(lease.paced for lease in leases)
        assert await is_held_back(client, 20, 3601)

    async def test_holds_for_another_client_and_after_a_restart(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), rate="1/h")
        await client.end(await client.lease_one())
        assert await is_held_back(backend.another(), 3000, 3601)
        await backend.reopen()
        assert await is_held_back(backend.client(), 3000, 3601)

    async def test_none_lets_everything_go_at_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9))
        leases = await client.lease(9)
        assert len(leases) == 9
        assert not any(lease.paced for lease in leases)


class TestRobots:
    @pytest.mark.parametrize(
        "text",
        ["", "User-agent: *\nDisallow: /ä\ud7ff\U0001f41f\n" * 20_000, "\x01" * 500 * 1024],
        ids=["empty", "long", "longest"],
    )
    async def test_whatever_they_are_they_come_back(self, backend: Backend, text: str) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True)
        robots = Robots(text=text, ttl_s=3600.0, crawl_delay_s=0.5)
        await client.end(await client.lease_one(), Verdict.RETURNED, robots=robots)
        assert await client.frontier.robots(client.crawl, HOST) == robots

    async def test_one_lease_until_they_are_known(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(9), robots=True, concurrency_per_host=4)
        (lease,) = await client.lease(9)
        assert lease.robots_at is None
        assert await other.lease(9) == []
        assert await other.frontier.robots(other.crawl, HOST) is None
        robots = Robots(text="User-agent: *", ttl_s=3600.0, error="sort of")
        await client.end(lease, Verdict.RETURNED, robots=robots)
        assert await other.frontier.robots(other.crawl, HOST) == robots
        leases = await other.send(9)
        assert len(leases) == 4
        assert all(lease.robots_at is not None for lease in leases)

    async def test_another_may_try_if_the_first_comes_without(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True)
        await client.end(await client.lease_one(), Verdict.RETRY, retry_in_s=600.0)
        assert (await client.lease_one()).robots_at is None

    async def test_are_asked_for_again_when_they_expire(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True)
        await client.end(await client.lease_one(), robots=Robots(text="", ttl_s=2.0))
        early = await client.lease_one()
        assert early.robots_at is not None
        await backend.advance(2.1)
        assert await client.lease(9) == [], "what is in flight counts"
        await client.end(early)
        (lease,) = await client.lease(9)
        assert lease.robots_at is None
        await client.end(lease, Verdict.RETURNED, robots=ALLOW_ALL)
        renewed = await client.lease_one()
        assert renewed.robots_at is not None
        assert renewed.robots_at > early.robots_at

    async def test_that_are_elsewhere_are_not_yet_known(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True)
        moved = Robots(text="", ttl_s=3600.0, location="http://b.example/robots.txt", hops=1)
        await client.end(await client.lease_one(), Verdict.RETURNED, robots=moved)
        assert await client.frontier.robots(client.crawl, HOST) == moved
        (lease,) = await client.lease(9)
        assert lease.robots_at is None

    async def test_crawl_delay_is_a_rate(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), *pages(3, "b.example"), robots=True)
        slow, free = sorted(await client.lease(9), key=lambda lease: lease.task.site)
        robots = Robots(text="", ttl_s=3600.0, crawl_delay_s=600.0)
        await client.end(slow, Verdict.RETURNED, robots=robots)
        await client.end(free, Verdict.RETURNED, robots=ALLOW_ALL)
        assert [lease.task.site for lease in await client.lease(9)] == ["b.example"] * 3
        assert (await client.host()).crawl_delay_s == 600.0
        assert await is_held_back(client, 20, 600)

    async def test_crawl_delay_holds_between_pages(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True)
        robots = Robots(text="", ttl_s=3600.0, crawl_delay_s=2.0)
        await client.end(await client.lease_one(), Verdict.RETURNED, robots=robots)
        await backend.advance(2.1)
        (lease,) = await client.lease(9)
        assert lease.paced
        await client.end(lease)
        assert await is_held_back(client, 1.9, 2.2)

    async def test_a_rate_slower_than_crawl_delay_wins(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True, rate="1/h")
        robots = Robots(text="", ttl_s=9000.0, crawl_delay_s=2.0)
        await client.end(await client.lease_one(), robots=robots)
        assert await is_held_back(client, 3000, 3601)

    async def test_are_of_no_interest_to_a_crawl_without_them(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        assert len(await client.lease(9)) == 3


class TestPushback:
    async def test_slows_the_host_for_everybody(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), *pages(1, "b.example"))
        first = await client.lease_one()
        await refuse(client, first)
        other = backend.another()
        assert [lease.task.site for lease in await other.lease(9)] == ["b.example"]
        assert await is_held_back(other, 0, PUSHBACK_FIRST_S)
        assert (await other.host()).penalty_s == PUSHBACK_FIRST_S
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        (lease,) = await other.lease(9)
        assert lease.paced

    async def test_a_burst_counts_once_the_next_one_doubles(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9))
        burst = await client.lease(3)
        await backend.advance(0.1)
        for lease in burst[:2]:
            await refuse(client, lease)
            await backend.advance(0.01)
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S
        await backend.advance(PUSHBACK_FIRST_S)
        after = await client.lease_one()
        await backend.advance(0.1)
        await refuse(client, after)
        await refuse(client, burst[2])
        assert (await client.host()).penalty_s == 2 * PUSHBACK_FIRST_S
        assert await is_held_back(client, PUSHBACK_FIRST_S, 2 * PUSHBACK_FIRST_S)

    async def test_retry_after_holds_and_survives_a_restart(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), lease_s=900.0)
        hasty, slow = await client.lease(2)
        await backend.advance(0.1)
        await refuse(client, hasty, 300.0)
        await refuse(client, slow)
        assert await is_held_back(client, 200, 300)
        await backend.reopen()
        assert await is_held_back(backend.client(), 200, 300)
        assert (await backend.client().host()).penalty_s == PUSHBACK_FIRST_S

    async def test_success_melts_the_penalty(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(20))
        refused, answered = await client.lease(2)
        await backend.advance(0.1)
        await refuse(client, refused)
        await client.end(answered)
        penalties = [(await client.host()).penalty_s]
        assert penalties == [PUSHBACK_FIRST_S], "an answer from before the refusal says nothing"
        while penalties[-1] and len(penalties) < 20:
            grant = await client.ask()
            if grant.leases:
                await client.finish(*map(outcome, grant.leases))
                penalties.append((await client.host()).penalty_s)
            else:
                await backend.advance((grant.wait_s or 0.0) + 0.001)
        assert penalties[-1] == 0.0
        assert penalties == sorted(set(penalties), reverse=True)
        await backend.advance(PUSHBACK_FIRST_S)
        assert len(await client.lease(9)) > 1

    @pytest.mark.parametrize(
        ("verdict", "how"),
        [
            (Verdict.DEAD, {"ours": True}),
            (Verdict.DROPPED, {}),
            (Verdict.DEAD, {}),
        ],
        ids=["a page that the handler cannot read", "404", "any other answer"],
    )
    async def test_any_answer_melts_it_whatever_we_make_of_it(
        self, backend: Backend, verdict: Verdict, how: dict[str, bool]
    ) -> None:
        client = backend.client()
        await client.start(*pages(9))
        await refuse(client, await client.lease_one())
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        await client.end(await client.lease_one(), verdict, latency_s=0.1, **how)
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S / 2

    async def test_not_one_of_a_host_that_does_not_want_us(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9))
        await refuse(client, await client.lease_one())
        await backend.advance(PUSHBACK_FIRST_S + 0.1)
        await client.end(await client.lease_one(), Verdict.DEAD, latency_s=0.1, blocked=True)
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S


class TestSlots:
    """An unused slot is given back, unless that would break the rate."""

    async def test_an_unsent_request_gives_its_slot_back(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="1/h")
        await client.end(await client.lease_one(), Verdict.RETURNED, sent=False)
        await client.lease_one()
        assert await is_held_back(client, 20, 3601)

    async def test_a_sent_one_does_not(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="1/h")
        await client.end(await client.lease_one(), Verdict.RETURNED)
        assert await is_held_back(client, 3000, 3601)

    async def test_not_after_somebody_was_served(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), rate="30/m", lease_s=60.0)
        early = await client.lease_one()
        await backend.advance(2.1)
        await client.lease_one()
        await client.end(early, Verdict.RETURNED, sent=False)
        assert await is_held_back(client, 0, 2.1)

    async def test_not_after_a_pushback(self, backend: Backend) -> None:
        """This also holds if the rate is slower than the penalty, so that the slot did not move."""
        client = backend.client()
        await client.start(*pages(9), rate="30/m", lease_s=60.0)
        refused = await client.lease_one()
        await backend.advance(2.1)
        unsent = await client.lease_one()
        await refuse(client, refused, 1.9)
        await client.end(unsent, Verdict.RETURNED, sent=False)
        assert await is_held_back(client, 0, 2.1)
