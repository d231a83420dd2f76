"""Exits that a host blocks cool down for that host only; their tasks use other exits."""

from __future__ import annotations

import pytest

from shoal.core.exit_policy import COOL_FIRST_S, COOL_LIMIT_S, MAX_LEVEL
from shoal.frontier.values import Lease, Verdict
from support.exits import (
    DC,
    GOOD,
    HOURS,
    LONG_S,
    SECOND_HOST,
    ExitClient,
    another_client,
    exit_client,
    exit_id,
    exits_of,
    laned,
    laned_pages,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend

COOL_S = COOL_FIRST_S / 2
"""How long an exit cools the first time, with the fixed chance of these tests."""


async def begin(
    backend: Backend, *, exits: int = 1, count: int = 20, **rules: object
) -> ExitClient:
    """A crawl of one host through a pool without limits."""
    client = exit_client(backend)
    await put_pool(client.frontier, exits, timeout_s=LONG_S, **rules)
    await client.begin(*laned_pages(count))
    return client


async def block(backend: Backend, client: ExitClient, **passage: float) -> Lease:
    """Finish the next task as blocked. Its retry is far away."""
    lease = await client.lease_one()
    await backend.advance(A_MOMENT_S)
    await client.blocked(lease, retry_in_s=LONG_S, **passage)
    return lease


async def assert_cools(backend: Backend, client: ExitClient, seconds: float) -> None:
    """Check that nothing is leased for `seconds`, and something is after that."""
    assert await client.take() == []
    await backend.advance(seconds - 1.0)
    assert await client.take() == []
    await backend.advance(1.0 + A_MOMENT_S)
    (lease,) = await client.take(1)
    await client.end(lease, Verdict.RETURNED, sent=False)


class TestBlockedExits:
    async def test_an_exit_cools_down(self, backend: Backend) -> None:
        client = await begin(backend)
        await block(backend, client)
        assert (await client.exit()).cooling == 1
        pool = await client.pool()
        assert (pool.exits, pool.ready, pool.cooling, pool.out) == (1, 0, 1, 0)
        await assert_cools(backend, client, COOL_S)
        assert (await client.exit()).cooling == 0

    async def test_the_dice_say_how_long(self, backend: Backend) -> None:
        client = await begin(backend)
        await block(backend, client, dice=0.5)
        await assert_cools(backend, client, COOL_FIRST_S * 0.75)

    async def test_or_the_host_if_that_is_longer(self, backend: Backend) -> None:
        client = await begin(backend)
        await block(backend, client, retry_after_s=2 * HOURS)
        await assert_cools(backend, client, 2 * HOURS)

    async def test_other_hosts_are_served_by_it(self, backend: Backend) -> None:
        client = await begin(backend)
        await block(backend, client)
        await client.add(*laned_pages(3, SECOND_HOST))
        leases = await client.take()
        assert [lease.task.site for lease in leases] == [SECOND_HOST] * 3
        assert set(exits_of(leases)) == {exit_id(0)}

    async def test_the_host_is_served_by_others(self, backend: Backend) -> None:
        client = await begin(backend, exits=3)
        await block(backend, client)
        await settle(backend)
        assert set(exits_of(await client.take())) == {exit_id(1), exit_id(2)}

    async def test_it_is_no_fault_of_the_host(self, backend: Backend) -> None:
        client = await begin(backend, exits=2)
        await block(backend, client)
        host = await client.host()
        assert (host.failures, host.penalty_s, host.failed) == (0, 0.0, 1)
        assert (await client.stats()).blocked == 1

    async def test_other_crawls_heed_it(self, backend: Backend) -> None:
        client, other = await begin(backend), another_client(backend, crawl="other")
        await other.begin(*laned_pages(3), *laned_pages(3, SECOND_HOST))
        await block(backend, client)
        assert {lease.task.site for lease in await other.take()} == {SECOND_HOST}

    async def test_then_exactly_one_is_tried(self, backend: Backend) -> None:
        client, other = await begin(backend), another_client(backend, "other")
        await block(backend, client)
        await backend.advance(COOL_S + A_MOMENT_S)
        (probe,) = await client.take()
        for _ in range(3):
            await settle(backend)
            assert await other.take() == [], "not while it is in flight"
        await client.good(probe)
        await settle(backend)
        assert len(await other.take()) == 8, "it works again"

    async def test_one_that_is_given_back_may_be_tried_again(self, backend: Backend) -> None:
        client = await begin(backend)
        await block(backend, client)
        await backend.advance(COOL_S + A_MOMENT_S)
        (probe,) = await client.take()
        await client.end(probe, Verdict.RETURNED, sent=False)
        await settle(backend)
        (probe,) = await client.take()
        await client.frontier.release(client.crawl, client.worker)
        await settle(backend)
        assert len(await client.take()) == 1

    async def test_again_and_it_cools_twice_as_long(self, backend: Backend) -> None:
        client = await begin(backend)
        for level in range(3):
            await block(backend, client)
            await assert_cools(backend, client, COOL_S * 2**level)
            await settle(backend)

    async def test_a_good_answer_halves_the_level(self, backend: Backend) -> None:
        client = await begin(backend)
        for _ in range(4):
            await block(backend, client)
            await backend.advance(HOURS)
        for _ in range(2):  # The level of cooling falls from 4 to 2, and to 1.
            (probe,) = await client.take()
            await client.good(probe)
            await settle(backend)
        await block(backend, client)
        await assert_cools(backend, client, COOL_S * 2)

    async def test_up_to_a_limit(self, backend: Backend) -> None:
        client = await begin(backend, count=40)
        for _ in range(MAX_LEVEL + 2):
            await block(backend, client)
            await backend.advance(COOL_LIMIT_S)
        await block(backend, client)
        await assert_cools(backend, client, COOL_LIMIT_S / 2)
        for _ in range(4):  # The level falls: 10, 5, 2, 1.
            await settle(backend)
            (probe,) = await client.take()
            await client.good(probe)
        await settle(backend)
        assert len(await client.take()) > 1

    async def test_what_left_before_says_nothing_new(self, backend: Backend) -> None:
        client = await begin(backend)
        first, second, third, fourth = await client.take(4)
        await backend.advance(10.0)
        await client.blocked(first, retry_in_s=LONG_S)
        await backend.advance(10.0)
        await client.blocked(second, third, retry_in_s=LONG_S)
        await backend.advance(10.0)
        await client.good(fourth)
        await assert_cools(backend, client, COOL_S - 20.0)
        await settle(backend)
        (probe,) = await client.take()
        await client.good(probe)
        await settle(backend)
        assert len(await client.take()) > 1, "it was blocked once"

    async def test_a_probe_ends_by_itself_whatever_left_before(self, backend: Backend) -> None:
        client = await begin(backend)
        first, second = await client.take(2)
        await backend.advance(1.0)
        await client.blocked(first, retry_in_s=LONG_S)
        await backend.advance(COOL_S + 1.0)
        (probe,) = await client.take()
        await client.good(second)
        await settle(backend)
        assert await client.take() == [], "the probe is still in flight"
        await client.good(probe)

    @pytest.mark.parametrize("verdict", [Verdict.DROPPED, Verdict.DEAD, Verdict.RETRY])
    async def test_no_other_answer_quarantines_anybody(
        self, backend: Backend, verdict: Verdict
    ) -> None:
        """Such as 404, 410, 500, or a handler that raises."""
        client = await begin(backend, exits=3)
        for lease in await client.take(12):
            await client.end(lease, verdict, retry_in_s=LONG_S, passage=GOOD)
        pool = await client.pool()
        assert (pool.ready, pool.cooling, pool.out) == (3, 0, 0)
        assert (await client.lane()).tier_pool == DC
        assert len(await client.take()) == 8

    async def test_survives_a_restart(self, backend: Backend) -> None:
        client = await begin(backend)
        await block(backend, client)
        await backend.reopen()
        client = exit_client(backend)
        await assert_cools(backend, client, COOL_S)
        await settle(backend)
        assert len(await client.take()) == 1


class TestTasksThatWereBlocked:
    async def test_go_by_another_exit(self, backend: Backend) -> None:
        """The first exit may be used again by then, and has rested for longer."""
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(laned(f"{HOST}/"))
        lease = await client.lease_one()
        assert exits_of([lease]) == [exit_id(0)]
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=COOL_S + 10.0)
        await client.add(laned(f"{SECOND_HOST}/other"))
        await client.good(*await client.take())
        await backend.advance(COOL_S + 20.0)
        lease = await client.lease_one()
        assert exits_of([lease]) == [exit_id(1)]
        assert lease.lent is not None
        assert (lease.lent.blocks, lease.lent.tried) == (1, 1)
        assert lease.task.retry_count == 0, "that is counted apart"

    async def test_go_by_any_again_when_all_were_tried(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2, timeout_s=LONG_S)
        await client.begin(laned(f"{HOST}/"))
        for blocks, tried in enumerate((0, 1, 2, 2, 2)):
            lease = await client.lease_one()
            assert lease.lent is not None
            assert (lease.lent.blocks, lease.lent.tried) == (blocks, tried)
            await backend.advance(A_MOMENT_S)
            await client.blocked(lease, retry_in_s=1.0)
            await backend.advance(2 * HOURS)

    async def test_blocks_and_failures_are_counted_apart(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 5)
        await client.begin(laned(f"{HOST}/"))
        for blocks in range(3):
            lease = await client.lease_one()
            assert lease.lent is not None
            assert (lease.lent.blocks, lease.task.retry_count) == (blocks, blocks)
            await backend.advance(A_MOMENT_S)
            await client.blocked(lease)
            await settle(backend)
            lease = await client.lease_one()
            assert lease.lent is not None
            assert (lease.lent.blocks, lease.task.retry_count) == (blocks + 1, blocks)
            await client.end(lease, Verdict.RETRY, passage=GOOD)
            await settle(backend)
        assert (await client.record(lease)).task.retry_count == 3

    async def test_let_others_of_the_lane_go_before(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        await put_pool(client.frontier, 2, concurrency=1)
        blocked = laned(f"{HOST}/blocked", priority=9)
        await client.begin(blocked)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease)
        await other.begin(laned("c.example/"))
        await other.take()  # The other crawl holds the second exit from now on.
        await backend.advance(COOL_S + 1.0)
        await client.add(*laned_pages(1))
        (lease,) = await client.take()
        assert lease.fingerprint != blocked.fingerprint
        assert exits_of([lease]) == [exit_id(0)]

    async def test_what_they_were_tried_by_outlives_a_restart(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 3)
        await client.begin(laned(f"{HOST}/"))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease)
        await backend.reopen()
        client = exit_client(backend)
        await backend.advance(HOURS)
        lease = await client.lease_one()
        assert lease.lent is not None
        assert (lease.lent.exit, lease.lent.blocks, lease.lent.tried) == (exit_id(1), 1, 1)

    async def test_a_loss_in_between_changes_nothing(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 3)
        await client.begin(laned(f"{HOST}/"), max_losses=9)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease)
        await settle(backend)
        await client.lease_one()
        await client.frontier.release(client.crawl, client.worker)
        await settle(backend)
        lease = await client.lease_one()
        assert lease.lent is not None
        assert (lease.lent.blocks, lease.lent.tried) == (1, 1)
        assert lease.lent.exit != exit_id(0)


class TestGateway:
    async def test_a_block_takes_a_new_session(self, backend: Backend) -> None:
        client = await begin(backend, is_gateway=True)
        for session in range(3):
            lease = await client.lease_one()
            assert lease.lent is not None
            assert (lease.lent.exit, lease.lent.session) == (exit_id(0), session)
            await backend.advance(A_MOMENT_S)
            await client.blocked(lease, retry_in_s=LONG_S)
            await settle(backend)
        exit_ = await client.exit()
        assert (exit_.session, exit_.cooling) == (3, 0)
        assert len(await client.take()) == 8, "nothing is known of the new one"

    async def test_it_is_another_at_every_host(self, backend: Backend) -> None:
        client = await begin(backend, is_gateway=True, pair_interval_s=60.0)
        await block(backend, client)
        await client.add(*laned_pages(1, SECOND_HOST))
        await settle(backend)
        leases = await client.take()
        assert sorted(lease.task.site for lease in leases) == [HOST, SECOND_HOST]
        assert {lease.lent.session for lease in leases if lease.lent} == {1}

    async def test_outlives_a_restart_and_a_new_list(self, backend: Backend) -> None:
        client = await begin(backend, is_gateway=True)
        await block(backend, client)
        await put_pool(client.frontier, 1, is_gateway=True)
        await backend.reopen()
        client = exit_client(backend)
        await settle(backend)
        lease = await client.lease_one()
        assert lease.lent is not None
        assert lease.lent.session == 1
