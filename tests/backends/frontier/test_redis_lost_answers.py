"""Calls to Redis that were carried out though nobody heard the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shoal.drivers.redis.link import RedisLink
from shoal.errors import StorageBusy
from shoal.frontier.redis.scripts import script
from shoal.frontier.values import Ask, Control, CrawlState, Lease
from support.frontiers import CRAWL, Client, entry, open_rules, outcome, pages
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer

Call = Callable[..., Awaitable[Any]]


class Ears:
    """Lets the answers to the next scripts get lost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.deaf_for = 0
        for name in ("run_known", "together"):
            monkeypatch.setattr(RedisLink, name, self._listening(getattr(RedisLink, name)))

    def _listening(self, call: Call) -> Call:
        async def listening(*args: Any) -> Any:
            answer = await call(*args)
            if self.deaf_for:
                self.deaf_for -= 1
                raise StorageBusy("no answer")
            return answer

        return listening


@pytest.fixture
def ears(monkeypatch: pytest.MonkeyPatch) -> Ears:
    return Ears(monkeypatch)


async def lose_answer(client: Client, ears: Ears, limit: int) -> None:
    ears.deaf_for = 1
    with pytest.raises(StorageBusy):
        await client.ask(limit)


def names(leases: list[Lease]) -> list[str]:
    return [lease.task.url.rpartition("/")[2] for lease in leases]


class TestLease:
    async def test_is_handed_out_again_at_once(self, on_redis: RedisBackend, ears: Ears) -> None:
        client = on_redis.client()
        await client.start(*pages(5))
        await lose_answer(client, ears, 3)
        assert (await client.stats()).leased == 3
        leases = await client.lease(5)
        assert names(leases) == ["0", "1", "2", "3", "4"]
        stats = await client.stats()
        assert (stats.leased, stats.lost) == (5, 0)
        assert (await client.record(leases[0])).losses == 0
        assert await client.renew(*leases) == []

    async def test_lost_again_and_again(self, on_redis: RedisBackend, ears: Ears) -> None:
        client = on_redis.client()
        await client.start(*pages(4))
        for limit in (1, 3, 4, 2):
            await lose_answer(client, ears, limit)
        assert names(await client.lease(9)) == ["0", "1", "2", "3"]
        assert (await client.stats()).lost == 0

    async def test_the_slot_is_free_again(self, on_redis: RedisBackend, ears: Ears) -> None:
        client = on_redis.client()
        await client.start(*pages(2), rate="1/m")
        await lose_answer(client, ears, 1)
        assert await on_redis.another().lease() == [], "another client cannot know"
        assert names(await client.lease()) == ["0"]
        assert await client.lease() == []

    async def test_not_a_slot_that_was_moved_since(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(2), rate="1/m", lease_s=300.0)
        await lose_answer(client, ears, 1)
        await on_redis.advance(61.0)
        assert names(await on_redis.another().lease()) == ["1"]
        grant = await client.ask()
        assert (grant.leases, (await client.stats()).waiting) == ([], 1)
        assert grant.wait_s == pytest.approx(60.1)

    async def test_is_given_back_though_the_crawl_is_paused(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(2))
        await lose_answer(client, ears, 2)
        await client.control(Control.PAUSE)
        assert (await client.ask()).state is CrawlState.PAUSED
        assert (await client.stats()).leased == 0
        await client.control(Control.RESUME)
        assert names(await client.lease(2)) == ["0", "1"]

    async def test_of_a_cancelled_crawl(self, on_redis: RedisBackend, ears: Ears) -> None:
        client = on_redis.client()
        await client.start(*pages(3))
        await lose_answer(client, ears, 2)
        await client.control(Control.CANCEL)
        assert (await client.ask()).state is CrawlState.CANCELLED
        assert (await client.stats()).dropped == 3

    async def test_of_a_crawl_that_was_started_over(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(3))
        await lose_answer(client, ears, 2)
        await client.frontier.forget(CRAWL)
        await client.start(*pages(2))
        assert names(await client.lease(9)) == ["0", "1"]

    async def test_a_suspect(self, on_redis: RedisBackend, ears: Ears) -> None:
        client = on_redis.client()
        await client.start(*pages(1))
        for _ in range(2):
            await client.lease()
            await client.frontier.release(CRAWL, client.worker)
        await lose_answer(client, ears, 1)
        lease = await client.lease_one()
        assert lease.alone
        assert (await client.record(lease)).losses == 2

    async def test_the_server_answers_too_late(
        self, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, on_redis: RedisBackend
    ) -> None:
        """No patches here: the server has the request, and is stopped before it reads it."""
        client = on_redis.another()
        await client.start(*pages(3))
        monkeypatch.setattr("shoal.drivers.redis.link.ANSWER_S", 0.3)
        hasty = on_redis.another("hasty")
        await hasty.stats()
        redis_server.pause()
        try:
            with pytest.raises(StorageBusy, match=r"127\.0\.0\.1"):
                await hasty.ask(3)
        finally:
            redis_server.resume()
        assert names(await hasty.lease(3)) == ["0", "1", "2"]
        assert (await client.stats()).lost == 0


class TestOthers:
    async def test_what_is_added_again_is_a_duplicate(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        client = on_redis.client()
        await client.start()
        ears.deaf_for = 1
        with pytest.raises(StorageBusy):
            await client.add(*pages(3))
        assert (await client.add(*pages(3))).duplicates == 3
        assert (await client.stats()).waiting == 3

    async def test_what_is_finished_again_is_stale(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        done = outcome(lease, items=2, follow_ups=[entry("b.example/new")])
        ears.deaf_for = 1
        with pytest.raises(StorageBusy):
            await client.finish(done)
        assert await client.finish(done) == [lease]
        stats = await client.stats()
        assert (stats.done, stats.items, stats.waiting) == (1, 2, 1)

    async def test_what_is_started_again_is_joined(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        ears.deaf_for = 1
        with pytest.raises(StorageBusy):
            await on_redis.frontier.start(CRAWL, open_rules())
        assert (await on_redis.frontier.start(CRAWL, open_rules())).state is CrawlState.RUNNING


class TestExchange:
    """Finish and lease in one round trip: what is done must not be done twice."""

    async def test_all_is_lost(self, on_redis: RedisBackend, ears: Ears) -> None:
        client = on_redis.client()
        await client.start(*pages(4))
        done = outcome(await client.lease_one())
        ears.deaf_for = 1
        with pytest.raises(StorageBusy):
            await client.frontier.exchange(CRAWL, [done], Ask(client.worker, 2))
        stale, grant = await client.frontier.exchange(CRAWL, [done], Ask(client.worker, 2))
        assert (stale, names(grant.leases)) == ([done.lease], ["1", "2"])
        stats = await client.stats()
        assert (stats.done, stats.leased, stats.lost) == (1, 2, 0)

    async def test_a_chain_is_not_gone_through_twice_as_fast(
        self, on_redis: RedisBackend, ears: Ears
    ) -> None:
        client = on_redis.client()
        await client.start(*(entry(f"a.example/{n}", chain="c") for n in range(4)))
        done = outcome(await client.lease_one())
        ears.deaf_for = 1
        with pytest.raises(StorageBusy):
            await client.frontier.exchange(CRAWL, [done], Ask(client.worker, 9))
        stale, grant = await client.frontier.exchange(CRAWL, [done], Ask(client.worker, 9))
        assert (stale, names(grant.leases)) == ([done.lease], ["1"])

    @pytest.mark.parametrize("known", ["finish", "lease"])
    async def test_the_server_knows_only_one_of_the_scripts(
        self, on_redis: RedisBackend, redis_server: RedisServer, known: str
    ) -> None:
        """It was restarted, and another client is about to load them."""
        client = on_redis.client()
        await client.start(*pages(5))
        done = outcome(await client.lease_one())
        with redis_server.client() as raw:
            raw.script_flush()
            raw.script_load(script(known).text)
        stale, grant = await client.frontier.exchange(CRAWL, [done], Ask(client.worker, 2))
        assert (stale, names(grant.leases)) == ([], ["1", "2"])
        stats = await client.stats()
        assert (stats.done, stats.leased, stats.waiting) == (1, 2, 2)
        assert await client.renew(*grant.leases) == []
        await client.finish(*map(outcome, grant.leases))
        assert await client.work_off() == 2
