"""Finishing: the effect of each verdict, and that a stale lease has none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.core.records import Robots
from shoal.errors import UnknownCrawl
from shoal.frontier import parts
from shoal.frontier.parts import add_surplus
from shoal.frontier.values import Control, Lease, Pushback, Stats, TaskState, Verdict
from support.frontiers import HOST, Backend, Client, entry, outcome, pages


class TestVerdicts:
    async def test_done(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.end(lease, items=3, rejected=1, filtered=2, body_bytes=500)
        stats = await client.stats()
        assert (stats.done, stats.leased) == (1, 0)
        assert (stats.items, stats.rejected, stats.filtered, stats.body_bytes) == (3, 1, 2, 500)
        record = await client.record(lease)
        assert (record.state, record.due, record.worker) == (TaskState.DONE, None, "")
        assert record.is_forgotten != backend.frontier.capabilities.keeps_ended
        assert (await client.host()).done == 1

    @pytest.mark.parametrize(
        ("verdict", "state"),
        [(Verdict.DEAD, TaskState.DEAD), (Verdict.DROPPED, TaskState.DROPPED)],
    )
    async def test_dead_and_dropped_keep_their_reason(
        self, backend: Backend, verdict: Verdict, state: TaskState
    ) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.end(lease, verdict, reason="it broke", detail="Traceback …")
        record = await client.record(lease)
        assert (record.state, record.reason) == (state, "it broke")
        is_kept = state is TaskState.DEAD or backend.frontier.capabilities.keeps_ended
        assert record.is_forgotten != is_kept
        if state is TaskState.DEAD:
            assert record.detail == "Traceback …"
        stats = await client.stats()
        assert (stats.dead, stats.dropped) == (state is TaskState.DEAD, state is TaskState.DROPPED)
        assert await client.lease() == []

    async def test_retry_waits_then_comes_back_with_its_count(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        first = await client.lease_one()
        assert first.task.retry_count == 0
        await client.end(first, Verdict.RETRY, reason="503", retry_in_s=2.0)
        record = await client.record(first)
        assert (record.state, record.task.retry_count) == (TaskState.DELAYED, 1)
        assert record.due is not None
        stats = await client.stats()
        assert (stats.delayed, stats.retries, stats.waiting) == (1, 1, 0)
        assert await client.lease() == []
        await backend.advance(2.1)
        second = await client.lease_one()
        assert second.task.retry_count == 1
        assert second.token != first.token
        await client.end(second, Verdict.DEAD)
        assert (await client.record(first)).task.retry_count == 2
        assert (await client.host()).failed == 2

    async def test_returned_is_ready_at_once_and_no_try(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        first = await client.lease_one()
        await client.end(first, Verdict.RETURNED)
        assert await client.state(first) is TaskState.WAITING
        again = await client.lease_one()
        assert again.fingerprint == first.fingerprint
        assert again.token != first.token
        assert again.task.retry_count == 0
        stats = await client.stats()
        assert (stats.retries, stats.lost, stats.waiting, stats.leased) == (0, 0, 2, 1)

    async def test_what_is_returned_before_its_time_waits_and_is_no_try(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        due = datetime(2030, 1, 1, tzinfo=UTC)
        await client.start(entry("a.example/1", not_before=due))
        first = await client.lease_one()
        assert first.task.not_before == due
        await client.end(first, Verdict.RETURNED, sent=False, retry_in_s=2.0)
        record = await client.record(first)
        assert (record.state, record.task.retry_count) == (TaskState.DELAYED, 0)
        stats = await client.stats()
        assert (stats.delayed, stats.waiting, stats.retries, stats.sent) == (1, 0, 0, 0)
        assert await client.lease() == []
        await backend.advance(2.1)
        assert (await client.lease_one()).task == first.task

    @pytest.mark.parametrize("field", [{"accept": (404, 500)}, {"on_failure": "failed"}])
    async def test_what_a_task_says_of_its_end_is_kept(
        self, backend: Backend, field: dict[str, Any]
    ) -> None:
        client = backend.client()
        await client.start(entry("a.example/1", **field))
        lease = await client.lease_one()
        assert {name: getattr(lease.task, name) for name in field} == field

    async def test_requests_are_counted_and_those_that_were_blocked(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(6))
        done, dead, retried, unsent, returned, robots = await client.lease(6)
        await client.finish(
            outcome(done),
            outcome(dead, Verdict.DEAD, blocked=True),
            outcome(retried, Verdict.RETRY, blocked=True, fault=True),
            outcome(unsent, Verdict.DROPPED, sent=False),
            outcome(returned, Verdict.RETURNED, sent=False),
            outcome(robots, Verdict.RETURNED),
        )
        stats = await client.stats()
        assert (stats.sent, stats.blocked) == (3, 2)

    async def test_all_verdicts_in_one_batch(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(5))
        leases = await client.lease(5)
        outcomes = [outcome(lease, v) for lease, v in zip(leases, Verdict, strict=True)]
        assert await client.finish(*outcomes) == []
        states = [await client.state(lease) for lease in leases]
        assert states == ["done", "delayed", "dead", "dropped", "waiting"]

    async def test_no_outcomes_is_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        before = await client.snapshot()
        assert await client.finish() == []
        assert await client.snapshot() == before


class TestManyFollowUps:
    @pytest.fixture(autouse=True)
    def few_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parts, "MAX_LINKS", 3)

    async def test_are_added_before_the_page_is_finished(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        links = pages(10, "b.example")
        many = outcome(await client.lease_one(), follow_ups=links)
        few = outcome(many.lease, follow_ups=links[:3])
        await add_surplus(client.frontier, client.crawl, [few, many])
        assert (few.follow_ups, many.follow_ups) == (links[:3], links[9:])
        stats = await client.stats()
        assert (stats.added, stats.leased, stats.duplicates) == (10, 1, 0)
        assert await client.finish(many) == []
        stats = await client.stats()
        assert (stats.added, stats.done, stats.waiting) == (11, 1, 10)

    async def test_of_a_page_that_is_not_ours_any_more_are_not_added(
        self, backend: Backend
    ) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1))
        late = outcome(await client.lease_one(), follow_ups=pages(10, "b.example"))
        await other.frontier.release(other.crawl, "worker")
        await add_surplus(client.frontier, client.crawl, [late])
        assert (await client.stats()).added == 1
        assert len(await client.finish(late)) == 1

    async def test_of_a_crawl_that_is_gone(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        late = outcome(await client.lease_one(), follow_ups=pages(10, "b.example"))
        await client.frontier.forget(client.crawl)
        with pytest.raises(UnknownCrawl):
            await add_surplus(client.frontier, client.crawl, [late])
        await client.start(*pages(1))
        await add_surplus(client.frontier, client.crawl, [late])
        assert (await client.stats()).added == 1

    async def test_of_a_crawl_that_was_cancelled(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        late = outcome(await client.lease_one(), follow_ups=pages(10, "b.example"))
        await client.control(Control.CANCEL)
        await add_surplus(client.frontier, client.crawl, [late])
        assert (await client.stats()).added == 1


class TestFollowUps:
    async def test_are_added_and_deduplicated(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        first, second = await client.lease(2)
        links = [entry("a.example/0"), entry("b.example/x", priority=4), entry("a.example/y")]
        assert (
            await client.finish(outcome(first, follow_ups=links), outcome(second, follow_ups=links))
            == []
        )
        stats = await client.stats()
        assert (stats.added, stats.waiting, stats.duplicates, stats.done) == (4, 2, 4, 2)
        assert {lease.task.url for lease in await client.lease(9)} == {
            "http://b.example/x",
            "http://a.example/y",
        }

    async def test_come_with_every_verdict(self, backend: Backend) -> None:
        """If a page fails half-way, the links it had found by then are kept."""
        client = backend.client()
        await client.start(*pages(5))
        for number, (lease, verdict) in enumerate(zip(await client.lease(5), Verdict, strict=True)):
            await client.end(lease, verdict, follow_ups=[entry(f"b.example/{number}")])
        assert (await client.host("b.example")).waiting == 5


async def leased_again(backend: Backend, client: Client) -> tuple[Lease, Lease]:
    """The expired lease of a task, and the lease that another worker now has on it."""
    await client.start(*pages(2), lease_s=2.0, concurrency_per_host=1)
    old = await client.lease_one()
    await backend.advance(2.1)
    new = await backend.another().lease_one()
    assert new.fingerprint == old.fingerprint
    return old, new


class TestStale:
    """A lease that was lost changes nothing, and the answer says so."""

    async def assert_refused(self, client: Client, lease: Lease, before: Stats) -> None:
        """Check that no verdict on this lease is accepted, nor the data that comes with it."""
        for verdict in Verdict:
            late = outcome(
                lease,
                verdict,
                follow_ups=[entry("b.example/new")],
                items=5,
                filtered=1,
                body_bytes=9,
                robots=Robots(text="stale", ttl_s=60.0),
                pushback=Pushback(retry_after_s=600.0),
            )
            assert await client.finish(late) == [lease]
        assert await client.renew(lease) == [lease]
        assert await client.snapshot() == before
        assert (await client.host()).penalty_s == 0.0
        assert await client.frontier.robots(client.crawl, HOST) is None

    async def test_expired_and_given_to_another(self, backend: Backend) -> None:
        client = backend.client()
        old, new = await leased_again(backend, client)
        await self.assert_refused(client, old, await client.snapshot())
        await client.end(new)
        assert await client.state(new) is TaskState.DONE

    async def test_finished_before(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.end(lease)
        await self.assert_refused(client, lease, await client.snapshot())
        assert await client.state(lease) is TaskState.DONE

    async def test_returned_before(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.end(lease, Verdict.RETURNED)
        await self.assert_refused(client, lease, await client.snapshot())
        assert await client.state(lease) is TaskState.WAITING

    @pytest.mark.parametrize("token", ["", "0" * 16, "None", "*", "%"])
    async def test_forged(self, backend: Backend, token: str) -> None:
        client = backend.client()
        await client.start(*pages(2))
        leased = await client.lease_one()
        before = await client.snapshot()
        for fingerprint in (leased.fingerprint, pages(2)[1].fingerprint, bytes(8)):
            await self.assert_refused(client, Lease(fingerprint, token, leased.task), before)
        await client.end(leased)

    async def test_the_token_of_another_task(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2))
        one, two = await client.lease(2)
        await self.assert_refused(
            client, Lease(one.fingerprint, two.token, one.task), await client.snapshot()
        )

    async def test_the_lease_of_another_crawl(self, backend: Backend) -> None:
        client, elsewhere = backend.client(), backend.client(crawl="elsewhere")
        await client.start(*pages(1))
        await elsewhere.start(*pages(1))
        mine, theirs = await client.lease_one(), await elsewhere.lease_one()
        await self.assert_refused(client, theirs, await client.snapshot())
        await client.end(mine)
        assert await elsewhere.state(theirs) is TaskState.LEASED

    async def test_stale_and_good_in_one_batch(self, backend: Backend) -> None:
        client = backend.client()
        old, new = await leased_again(backend, client)
        good = outcome(new, follow_ups=[entry("b.example/good")])
        late = outcome(old, follow_ups=[entry("b.example/late")])
        assert await client.finish(late, good, late) == [old, old]
        assert (await client.host("b.example")).waiting == 1
        assert await client.state(entry("b.example/good")) is TaskState.WAITING

    async def test_the_same_lease_twice_in_one_batch(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        first = outcome(lease, follow_ups=[entry("b.example/first")])
        second = outcome(lease, Verdict.DEAD, follow_ups=[entry("b.example/second")])
        assert await client.finish(first, second) == [lease]
        stats = await client.stats()
        assert (stats.done, stats.dead, stats.added) == (1, 0, 2)
        assert await client.state(entry("b.example/first")) is TaskState.WAITING

    async def test_a_forgotten_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.frontier.forget(client.crawl)
        with pytest.raises(UnknownCrawl):
            await client.finish(outcome(lease))
        await client.start(*pages(1))
        again = await client.lease_one()
        assert await client.finish(outcome(lease)) == [lease]
        await client.end(again)
