"""Tasks whose pool has no exit for them wait and then die, or go without an exit."""

from __future__ import annotations

from shoal.core.exit_policy import STARVED_BATCH, UNSEEN_S
from shoal.core.exits import Blame
from shoal.frontier.values import Control, CrawlState, Pushback, TaskState, Verdict
from support.exits import (
    ASK_EVERY_S,
    DC,
    GOOD,
    HOURS,
    LONG_S,
    RES,
    SECOND_HOST,
    ExitClient,
    another_client,
    exit_client,
    exit_id,
    exits_of,
    laned,
    laned_pages,
    pass_time,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend, entry, pages

TIMEOUT_S = 200.0


async def reason_of_death(backend: Backend, client: ExitClient) -> str:
    """Check that the waiting task dies after the pool's timeout, and return the reason."""
    await pass_time(backend, client, TIMEOUT_S - 2 * ASK_EVERY_S)
    assert (await client.stats()).dead == 0, "too early"
    await pass_time(backend, client, 4 * ASK_EVERY_S)
    (dead,) = await client.frontier.dead(client.crawl, 9)
    return dead.reason


class TestStarving:
    async def test_in_a_pool_without_exits(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await client.begin(laned(f"{HOST}/"))
        await client.control(Control.SEAL)
        reason = await reason_of_death(backend, client)
        assert reason.startswith("no exit of pool dc could be used for ")
        assert reason.endswith(": it has no exits")
        stats = await client.stats()
        assert (stats.dead, stats.state) == (1, CrawlState.FINISHED)

    async def test_in_a_pool_that_nobody_knows(self, backend: Backend) -> None:
        client = exit_client(backend)
        await client.begin(laned(f"{HOST}/"))
        await client.ask()
        for _ in range(62):
            await backend.advance(55.0)
            await client.ask()
        assert (await client.stats()).dead == 0
        assert (await client.lane()).starved_s > 3300.0
        for _ in range(6):
            await backend.advance(55.0)
            await client.ask()
        (dead,) = await client.frontier.dead(client.crawl, 9)
        assert "for 1h: it has no exits" in dead.reason

    async def test_where_all_are_out_or_cooling(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 3, timeout_s=TIMEOUT_S, concurrency=1)
        await client.begin(*laned_pages(3))
        leases = await client.take()
        await backend.advance(A_MOMENT_S)
        await client.blocked(*leases[:2], dice=0.9, retry_in_s=LONG_S)
        await client.faulty(leases[2], blame=Blame.FORGED)
        reason = await reason_of_death(backend, client)
        assert reason.endswith(": 3 exits, 1 out, 2 cooling here")

    async def test_where_the_budget_is_spent(self, backend: Backend) -> None:
        client = exit_client(backend)
        money = {"per_request": 1.0, "budget": 1.0, "budget_period_s": LONG_S}
        await put_pool(client.frontier, 1, timeout_s=TIMEOUT_S, **money)
        await client.begin(*laned_pages(2))
        await client.good(await client.lease_one())
        reason = await reason_of_death(backend, client)
        assert "budget spent" in reason

    async def test_all_of_a_lane_die_and_no_others(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await put_pool(client.frontier, 0, RES)
        count = 2 * STARVED_BATCH + 20
        await client.begin(
            *laned_pages(count), *laned_pages(1, SECOND_HOST), *laned_pages(3, pool=RES)
        )
        await pass_time(backend, client, TIMEOUT_S + 10 * ASK_EVERY_S)
        stats = await client.stats()
        assert (stats.dead, stats.waiting) == (count + 1, 3)
        lanes = await client.frontier.lanes(client.crawl, 9)
        assert [(lane.pool, lane.waiting) for lane in lanes] == [(RES, 3)]
        assert (await client.host()).waiting == 3

    async def test_is_told_while_it_lasts(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0)
        await client.begin(*laned_pages(3))
        await client.ask()
        await pass_time(backend, client, 90.0)
        assert 60.0 <= (await client.lane()).starved_s <= 90.0
        await put_pool(client.frontier, 1)
        await settle(backend)
        assert len(await client.take(1)) == 1
        assert (await client.lane()).starved_s == 0.0

    async def test_ends_when_an_exit_can_be_used(self, backend: Backend) -> None:
        client = exit_client(backend)
        await client.begin(*laned_pages(9))
        for _ in range(3):
            await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
            await pass_time(backend, client, TIMEOUT_S * 0.7)
            await put_pool(client.frontier, 1, timeout_s=TIMEOUT_S)
            await pass_time(backend, client, ASK_EVERY_S)
        assert (await client.stats()).dead == 0

    async def test_nobody_starves_while_paused(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await client.begin(*laned_pages(1))
        await pass_time(backend, client, TIMEOUT_S / 2)
        await client.control(Control.PAUSE)
        await pass_time(backend, client, HOURS)
        await client.control(Control.RESUME)
        await pass_time(backend, client, TIMEOUT_S / 2)
        assert (await client.stats()).dead == 0
        await pass_time(backend, client, TIMEOUT_S)
        assert (await client.stats()).dead == 1

    async def test_nor_while_nobody_asks(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await client.begin(*laned_pages(1))
        for _ in range(3):
            assert await client.take() == []
            await backend.advance(2 * UNSEEN_S)
        assert (await client.stats()).dead == 0

    async def test_nor_while_only_those_ask_who_know_other_pools(self, backend: Backend) -> None:
        client = exit_client(backend, pools=(RES,))
        await put_pool(client.frontier, 1, timeout_s=TIMEOUT_S)
        await client.begin(*laned_pages(1))
        await pass_time(backend, client, 3 * TIMEOUT_S)
        assert len(await another_client(backend).take()) == 1

    async def test_nor_while_exits_are_busy(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 1, concurrency=1, timeout_s=TIMEOUT_S)
        await client.begin(*laned_pages(1))
        await other.begin(*laned_pages(1, SECOND_HOST))
        await other.take()
        await pass_time(backend, client, 3 * TIMEOUT_S)
        assert (await client.stats()).dead == 0

    async def test_nor_while_the_host_may_not_be_hit(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, timeout_s=TIMEOUT_S)
        await client.begin(*laned_pages(2))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        pushback = Pushback(retry_after_s=HOURS / 2)
        await client.end(lease, Verdict.DEAD, passage=GOOD, pushback=pushback)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await pass_time(backend, client, HOURS / 2 - 20.0)
        assert (await client.lane()).waiting == 1

    async def test_the_dead_can_be_tried_again(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        task = laned(f"{HOST}/")
        await client.begin(task)
        await reason_of_death(backend, client)
        assert await client.state(task) is TaskState.DEAD
        await put_pool(client.frontier, 1, timeout_s=TIMEOUT_S)
        assert await client.frontier.retry_dead(client.crawl) == 1
        await settle(backend)
        (lease,) = await client.take()
        assert lease.task.retry_count == 0

    async def test_a_step_of_a_chain_that_dies_lets_the_next_one_go(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=TIMEOUT_S)
        await client.begin(laned(f"{HOST}/0", chain="c"), entry(f"{HOST}/1", chain="c"))
        assert await client.take() == []
        for _ in range(20):
            await backend.advance(ASK_EVERY_S)
            if leases := await client.take():
                break
        assert [lease.task.url for lease in leases] == [f"http://{HOST}/1"]
        assert (await client.stats()).dead == 1


class TestDirect:
    async def test_only_where_the_pool_allows_it(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, allow_direct=True)
        await put_pool(client.frontier, 0, RES)
        await client.begin(*laned_pages(2), *laned_pages(2, pool=RES))
        leases = await client.take()
        assert [lease.lent.exit for lease in leases if lease.lent] == ["", ""]
        assert {lease.lent.pool for lease in leases if lease.lent} == {DC}
        assert (await client.lane(pool=RES)).waiting == 2

    async def test_not_while_an_exit_is_merely_busy(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, allow_direct=True, concurrency=1, interval_s=60.0)
        await client.begin(*laned_pages(5))
        (lease,) = await client.take()
        assert exits_of([lease]) == [exit_id(0)]
        await client.good(lease)
        await settle(backend)
        assert await client.take() == [], "it will be ready in a moment"

    async def test_where_all_exits_are_blocked(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, allow_direct=True)
        await client.begin(*laned_pages(5))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=LONG_S)
        await settle(backend)
        lease = await client.lease_one()
        assert exits_of([lease]) == [""]

    async def test_what_comes_of_it_says_nothing_of_exits(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, allow_direct=True)
        await client.begin(*laned_pages(4), concurrency_per_host=4)
        good, given_back, lost, blocked = await client.take()
        await client.good(good)
        await client.end(given_back, Verdict.RETURNED, sent=False)
        await backend.advance(A_MOMENT_S)
        await client.end(blocked, Verdict.DEAD, blocked=1)
        await client.frontier.release(client.crawl, client.worker)
        assert await client.finish() == []
        await client.assert_free()
        assert await client.state(lost) is TaskState.WAITING
        assert (await client.host()).leased == 0

    async def test_beside_the_hosts_room_and_rate(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, allow_direct=True)
        await client.begin(*laned_pages(4), *pages(4), rate="1/h")
        assert len(await client.take()) == 1
