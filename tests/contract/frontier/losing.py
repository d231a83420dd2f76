"""Workers that die: renewing, taking back expired leases, releasing, poison."""

from __future__ import annotations

from shoal.frontier.values import Control, CrawlState, TaskState
from support.frontiers import Backend, entry, outcome, pages


class TestRenew:
    async def test_a_renewed_lease_is_not_taken_back(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1), lease_s=2.0)
        lease = await client.lease_one()
        for _ in range(2):
            await backend.advance(1.4)
            assert await client.renew(lease) == []
        assert await other.lease() == []
        await client.end(lease)
        assert (await client.stats()).lost == 0

    async def test_moves_the_moment_it_expires(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        before = (await client.record(lease)).due or 0.0
        await backend.advance(0.1)
        await client.renew(lease)
        assert 0.1 <= ((await client.record(lease)).due or 0.0) - before + 1e-6 < 10

    async def test_names_those_that_are_no_longer_ours(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3))
        held, ended, released = await client.lease(3)
        await client.end(ended)
        assert await client.renew(held, ended) == [ended]
        await client.frontier.release(client.crawl, client.worker)
        assert await client.renew(held, released, ended) == [held, released, ended]

    async def test_an_expired_lease_is_ours_until_somebody_takes_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), lease_s=2.0)
        one, two = await client.lease(2)
        await backend.advance(2.1)
        assert await client.renew(one) == []
        await client.end(two)

    async def test_nothing_is_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start()
        assert await client.renew() == []


class TestReclaim:
    async def test_an_expired_lease_goes_to_another_worker(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1), lease_s=2.0)
        old = await client.lease_one()
        await backend.advance(2.1)
        new = await other.lease_one()
        assert new.fingerprint == old.fingerprint
        assert new.token != old.token
        assert new.task.retry_count == 0, "a loss is no try"
        record = await other.record(new)
        assert (record.worker, record.losses) == ("another", 1)
        stats = await other.stats()
        assert (stats.lost, stats.leased, stats.waiting) == (1, 1, 0)

    async def test_makes_room_on_a_full_host(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), lease_s=2.0, concurrency_per_host=1)
        await client.lease_one()
        assert await client.lease() == []
        await backend.advance(2.1)
        await client.lease_one()

    async def test_a_task_that_kills_its_workers_is_poison(self, backend: Backend) -> None:
        client = backend.client()
        poison, harmless = entry("a.example/poison", priority=9), entry("a.example/harmless")
        await client.start(poison, harmless, lease_s=1.0, max_losses=2, concurrency_per_host=1)
        await client.control(Control.SEAL)
        for _ in range(2):
            assert (await client.lease_one()).fingerprint == poison.fingerprint
            await backend.advance(1.1)
        lease = await client.lease_one()
        assert lease.fingerprint == harmless.fingerprint
        record = await client.record(poison)
        assert (record.state, record.losses) == (TaskState.DEAD, 2)
        assert "poison" in record.reason
        assert (await client.host()).failed == 0, "that is no failure of the host"
        await client.end(lease)
        stats = await client.stats()
        assert (stats.dead, stats.done, stats.lost) == (1, 1, 2)
        assert stats.state is CrawlState.FINISHED

    async def test_a_task_that_lost_two_workers_is_handed_out_alone(self, backend: Backend) -> None:
        """Otherwise the harmless tasks of a batch would be lost each time with the poison in it."""
        client, other = backend.client(), backend.another()
        await client.start(*pages(4), max_losses=5)
        for _ in range(2):
            leases = await client.lease(9)
            assert [lease.alone for lease in leases] == [False] * 4
            await client.frontier.release(client.crawl, client.worker)
        suspect = await client.lease_one(9)
        assert suspect.alone
        assert await client.lease(9) == [], "not while it holds one"
        assert (await other.lease_one(9)).alone
        await client.end(suspect)
        assert (await client.lease_one(9)).alone

    async def test_suspects_come_after_all_others(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), max_losses=5)
        for _ in range(2):
            await client.lease(9)
            await client.frontier.release(client.crawl, client.worker)
        fresh = entry("b.example/fresh")
        await client.add(fresh)
        lease = await client.lease_one(9)
        assert (lease.fingerprint, lease.alone) == (fresh.fingerprint, False)
        await client.end(lease)
        assert (await client.lease_one(9)).alone

    async def test_the_last_task_turning_poison_ends_the_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), lease_s=1.0, max_losses=1)
        await client.control(Control.SEAL)
        await client.lease_one()
        await backend.advance(1.1)
        grant = await client.ask()
        assert (grant.state, grant.leases) == (CrawlState.FINISHED, [])

    async def test_happens_after_a_restart_too(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), lease_s=2.0)
        await client.lease(3)
        await backend.reopen()
        await backend.advance(2.1)
        assert len(await backend.client().lease(9)) == 3


class TestRelease:
    async def test_takes_back_at_once_what_that_worker_held(self, backend: Backend) -> None:
        dead, alive = backend.client("dead"), backend.another("alive")
        await dead.start(*pages(5))
        theirs, mine = await dead.lease(3), await alive.lease(2)
        assert sorted(await alive.frontier.holders(alive.crawl)) == ["alive", "dead"]
        assert await alive.frontier.release(alive.crawl, "dead") == 3
        assert await alive.frontier.holders(alive.crawl) == ["alive"]
        stats = await alive.stats()
        assert (stats.waiting, stats.leased, stats.lost) == (3, 2, 3)
        assert await dead.finish(*map(outcome, theirs)) == theirs
        assert await alive.finish(*map(outcome, mine)) == []
        assert len(await alive.lease(9)) == 3

    async def test_a_worker_that_holds_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        assert await client.frontier.release(client.crawl, "nobody") == 0
        assert await client.frontier.holders(client.crawl) == []

    async def test_counts_as_a_loss_too(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), max_losses=2)
        for state in (TaskState.WAITING, TaskState.DEAD):
            lease = await client.lease_one()
            assert await client.frontier.release(client.crawl, client.worker) == 1
            assert await client.state(lease) is state

    async def test_works_while_paused(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.lease_one()
        await client.control(Control.PAUSE)
        assert await client.frontier.release(client.crawl, client.worker) == 1
        await client.control(Control.RESUME)
        await client.lease_one()
