"""The clock is set back or forward, or a server with another clock takes over: work goes on."""

from __future__ import annotations

import time

import pytest

from shoal.core.policy import PUSHBACK_FIRST_S
from shoal.core.records import Robots
from shoal.frontier.board import Leader
from shoal.frontier.clock import JUMP_S
from shoal.frontier.values import WORKER_SILENT_S, Control, CrawlState, Pushback, Verdict
from support.frontiers import A_MOMENT_S, CRAWL, HOST, Backend, entry, outcome, pages, pulse

HOURS = 3600.0
YEARS = 366 * 24 * HOURS

BACK = [(-2 * HOURS,), (3 * YEARS, -3 * YEARS), (-2 * HOURS, -2 * HOURS, 5 * HOURS, -1 * HOURS)]
"""Jumps of the clock: all of them end in the past."""


async def jump(backend: Backend, jumps: tuple[float, ...]) -> None:
    """Move the clock. After each step a worker with no room asks for work."""
    for seconds in jumps:
        await backend.advance(seconds)
        await backend.client("onlooker").ask(0)


@pytest.mark.parametrize("jumps", BACK, ids=["back", "forward and back", "to and fro"])
class TestClockSetBack:
    async def test_a_crawl_goes_on_to_its_end(
        self, backend: Backend, jumps: tuple[float, ...]
    ) -> None:
        """One page waits for its host, one for its retry, and one is leased to a worker that is
        gone: none of them waits longer than without the jump."""
        client, gone = backend.client(), backend.another("gone")
        await client.start(*pages(3), entry("b.example/"), rate="30/m", lease_s=30.0)
        await client.control(Control.SEAL)
        first, other = await client.lease(9)
        await client.end(first, Verdict.RETRY, retry_in_s=20.0)
        await client.end(other)
        await backend.advance(2.5)
        assert len(await gone.lease()) == 1
        await jump(backend, jumps)
        waited = 0.0
        while (grant := await client.ask(9)).state is CrawlState.RUNNING:
            await client.finish(*map(outcome, grant.leases))
            if not grant.leases:
                assert grant.wait_s is not None
                waited += grant.wait_s + A_MOMENT_S
                await backend.advance(grant.wait_s + A_MOMENT_S)
            assert waited < 60.0
        stats = await client.stats()
        assert (stats.done, stats.remaining, stats.state) == (4, 0, CrawlState.FINISHED)

    async def test_no_host_is_hit_sooner(self, backend: Backend, jumps: tuple[float, ...]) -> None:
        client = backend.client()
        await client.start(*pages(3), rate="30/m")
        await client.lease_one()
        await backend.advance(0.5)
        before = (await client.ask()).wait_s
        assert before is not None
        await jump(backend, tuple(seconds for seconds in jumps if seconds < 0))
        grant = await client.ask()
        assert grant.leases == []
        assert grant.wait_s is not None
        assert before - A_MOMENT_S <= grant.wait_s <= before + JUMP_S
        await backend.advance(grant.wait_s + A_MOMENT_S)
        assert len(await client.lease()) == 1

    async def test_a_refusal_still_counts_for_as_long(
        self, backend: Backend, jumps: tuple[float, ...]
    ) -> None:
        client = backend.client()
        await client.start(*pages(9))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.end(lease, Verdict.DEAD, pushback=Pushback(90.0))
        await jump(backend, tuple(seconds for seconds in jumps if seconds < 0))
        grant = await client.ask()
        assert grant.leases == []
        assert grant.wait_s == pytest.approx(90.0, abs=A_MOMENT_S)
        await backend.advance(90.0 + A_MOMENT_S)
        await client.end(await client.lease_one(), latency_s=0.1)
        assert (await client.host()).penalty_s < PUSHBACK_FIRST_S, "an answer since then counts"

    async def test_robots_txt_is_known_for_its_time(
        self, backend: Backend, jumps: tuple[float, ...]
    ) -> None:
        client = backend.client()
        await client.start(*pages(9), robots=True)
        robots = Robots(text="", ttl_s=60.0)
        await client.end(await client.lease_one(), Verdict.RETURNED, robots=robots)
        await jump(backend, tuple(seconds for seconds in jumps if seconds < 0))
        assert (await client.lease_one()).robots_at is not None
        await backend.advance(61.0)
        assert (await client.lease_one()).robots_at is None

    async def test_who_is_alive(self, backend: Backend, jumps: tuple[float, ...]) -> None:
        frontier = backend.frontier
        await backend.client().start()
        await frontier.beat(CRAWL, pulse("gone"))
        await jump(backend, jumps)
        await frontier.beat(CRAWL, pulse("alive"))
        await backend.advance(WORKER_SILENT_S - 1.0)
        await frontier.beat(CRAWL, pulse("alive"))
        await backend.advance(2.0)
        assert [heard.worker for heard in await frontier.workers(CRAWL)] == ["alive"]

    async def test_who_asks_is_told_by_the_clock(
        self, backend: Backend, jumps: tuple[float, ...]
    ) -> None:
        """Users compare these moments with their own clocks."""
        client = backend.client()
        posts = [entry(f"{HOST}/{n}", method="POST") for n in range(9)]
        await client.start(*posts, rate="1/m", lease_s=90.0)
        await client.lease_one()
        await jump(backend, jumps)
        await backend.advance(61.0)
        lease = await client.lease_one()
        now = backend.clock.now
        (post,) = await client.frontier.find_others(
            CRAWL, lease.task.site, lease.task.url.__eq__, 9
        )
        assert post.due == pytest.approx(now + 90.0, abs=1.0)
        assert (await client.record(lease)).due == pytest.approx(now + 90.0, abs=1.0)
        assert (await client.host(HOST)).next_at == pytest.approx(now + 60.0, abs=1.0)
        await client.frontier.beat(CRAWL, pulse())
        (heard,) = await client.frontier.workers(CRAWL)
        assert heard.at == pytest.approx(now, abs=1.0)
        await client.control(Control.CANCEL)
        assert (await client.stats()).finished_at == pytest.approx(now, abs=1.0)

    async def test_what_is_scraped_later_is_newer(
        self, backend: Backend, jumps: tuple[float, ...]
    ) -> None:
        client = backend.client()
        await client.start(*pages(9))
        earlier = (await client.lease_one()).now()
        await jump(backend, jumps)
        await backend.advance(1.0)
        assert (await client.lease_one()).now() > earlier

    async def test_a_leader_that_is_gone_is_followed(
        self, backend: Backend, jumps: tuple[float, ...]
    ) -> None:
        notes = backend.frontier.notes
        await notes.lead("one", 5.0)
        for seconds in jumps:
            await backend.advance(seconds)
            await notes.leader()
        waited = 0.0
        while (leader := await notes.lead("other", 5.0)) is None:
            await backend.advance(1.0)
            waited += 1.0
            assert waited < 7.0
        assert leader == Leader("other", 2)


class TestClockSetForward:
    async def test_a_lease_that_expires_early_is_harmless(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1))
        early = await client.lease_one()
        await backend.advance(3 * YEARS)
        late = await other.lease_one()
        await backend.advance(-3 * YEARS)
        assert await client.finish(outcome(early)) == [early]
        await other.end(late)

    async def test_what_was_done_in_the_future_is_soon_past(self, backend: Backend) -> None:
        """In the future, a host was hit, a page delayed, and another leased to a worker that
        died."""
        client, gone = backend.client(), backend.another("gone")
        await client.start(*pages(3), rate="30/m", lease_s=30.0)
        await backend.advance(3 * YEARS)
        await client.end(await client.lease_one(), Verdict.RETRY, retry_in_s=20.0)
        await backend.advance(3.0)
        await gone.lease_one()
        await backend.advance(-3 * YEARS)
        for _ in range(60):
            await backend.advance(1.0)
            await client.finish(*map(outcome, await client.lease()))
        assert (await client.stats()).done == 3

    async def test_small_steps_are_no_jump(self, backend: Backend) -> None:
        """Clocks are adjusted all the time. Tasks then wait longer by the size of the step."""
        client = backend.client()
        await client.start(*pages(9), rate="30/m")
        for _ in range(5):
            await client.lease_one()
            await backend.advance(-0.9)
            assert await client.lease() == []
            await backend.advance(3.0)
        assert (await client.host()).next_at == pytest.approx(backend.clock.now, abs=0.5)


class TestFrontiersTime:
    async def test_a_lease_knows_it(self, backend: Backend) -> None:
        """A worker's clock may be wrong: only the time that passes on it counts."""
        client = backend.client()
        await client.start(*pages(1))
        asked = time.monotonic()
        lease = await client.lease_one()
        told = lease.now()
        assert -0.001 <= told - backend.clock.now <= time.monotonic() - asked + 0.001
        assert lease.now() > told
