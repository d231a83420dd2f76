"""Hosts that block all exits: the site is to blame, or the pool to escalate to is used."""

from __future__ import annotations

import pytest

from shoal.core.exit_policy import (
    BLOCKED_EXITS,
    BUSY_WAIT_S,
    COOL_FIRST_S,
    GOOD_PROBES,
    PROBE_EVERY_S,
    SITE_S,
    WINDOW_ANSWERS,
    WINDOW_S,
)
from shoal.core.policy import PUSHBACK_FIRST_S
from shoal.frontier.values import Lease, Verdict
from support.exits import (
    DC,
    GOOD,
    HOURS,
    LONG_S,
    RES,
    SECOND_HOST,
    ExitClient,
    another_client,
    exit_client,
    exits_of,
    laned_pages,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend, Client

MANY_EXITS = 20


async def begin(
    backend: Backend, *, exits: int = MANY_EXITS, count: int = 100, **rules: object
) -> ExitClient:
    """A crawl of one host through a pool whose exits have one request in flight each."""
    client = exit_client(backend)
    await put_pool(client.frontier, exits, **{"concurrency": 1, "timeout_s": LONG_S, **rules})
    await client.begin(*laned_pages(count))
    return client


async def tiered(backend: Backend, *, exits: int = 12, **res: object) -> ExitClient:
    """The same, with a second pool to escalate to."""
    client = await begin(backend, exits=exits, escalate_to=RES)
    await put_pool(client.frontier, 4, RES, timeout_s=LONG_S, **res)
    return client


async def block_all(backend: Backend, client: ExitClient, count: int = WINDOW_ANSWERS) -> None:
    """Lease `count` tasks at once, and finish all of them as blocked."""
    leases = await client.take(count)
    assert len(leases) == count
    await backend.advance(A_MOMENT_S)
    await client.blocked(*leases, retry_in_s=LONG_S)


async def pool_of_next(client: Client) -> str:
    """The pool of the exit that the next task gets. The task is finished at once."""
    lease = await client.lease_one()
    assert lease.lent is not None
    await client.end(lease, passage=GOOD)
    return lease.lent.pool


def pools_of(leases: list[Lease]) -> list[str]:
    return sorted(lease.lent.pool for lease in leases if lease.lent is not None)


class TestSiteWideBlocks:
    async def test_push_the_host_back_and_spare_the_pool(self, backend: Backend) -> None:
        client = await begin(backend)
        leases = await client.take(WINDOW_ANSWERS + 5)
        await backend.advance(A_MOMENT_S)
        await client.blocked(*leases[: WINDOW_ANSWERS - 1], retry_in_s=LONG_S)
        assert (await client.host()).penalty_s == 0.0
        assert not (await client.lane()).is_site_blocking
        await client.blocked(*leases[WINDOW_ANSWERS - 1 :], retry_in_s=LONG_S)
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S
        assert (await client.lane()).is_site_blocking
        pool = await client.pool()
        assert (pool.cooling, pool.ready) == (WINDOW_ANSWERS - 1, MANY_EXITS - WINDOW_ANSWERS + 1)
        grant = await client.ask()
        assert grant.leases == []
        assert 0.5 < (grant.wait_s or 0.0) <= PUSHBACK_FIRST_S

    async def test_quarantine_nobody_while_they_last(self, backend: Backend) -> None:
        client = await begin(backend)
        await block_all(backend, client)
        for _ in range(4):
            await backend.advance(10.0)
            lease = await client.lease_one()
            await backend.advance(A_MOMENT_S)
            await client.blocked(lease, retry_in_s=LONG_S)
        assert (await client.pool()).cooling == WINDOW_ANSWERS - 1
        await backend.advance(SITE_S + 1.0)
        assert not (await client.lane()).is_site_blocking
        assert (await client.pool()).cooling == 0
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=LONG_S)
        assert (await client.pool()).cooling == 1, "then exits are to blame again"

    async def test_tasks_count_them_all_the_same(self, backend: Backend) -> None:
        client = await begin(backend, count=WINDOW_ANSWERS + 1)
        leases = await client.take()
        await backend.advance(A_MOMENT_S)
        await client.blocked(*leases[:-1], retry_in_s=LONG_S)
        await client.blocked(leases[-1], retry_in_s=HOURS)
        await backend.advance(HOURS + 1.0)
        lease = await client.lease_one()
        assert lease.fingerprint == leases[-1].fingerprint
        assert lease.lent is not None
        assert (lease.lent.blocks, lease.lent.tried) == (1, 1)
        assert exits_of([lease]) != exits_of(leases[-1:])

    async def test_half_of_the_answers_are_enough(self, backend: Backend) -> None:
        client = await begin(backend)
        leases = await client.take(WINDOW_ANSWERS)
        await backend.advance(A_MOMENT_S)
        await client.good(*leases[: WINDOW_ANSWERS // 2])
        await client.blocked(*leases[WINDOW_ANSWERS // 2 :], retry_in_s=LONG_S)
        assert (await client.lane()).is_site_blocking

    async def test_less_are_not(self, backend: Backend) -> None:
        client = await begin(backend)
        leases = await client.take(MANY_EXITS)
        await backend.advance(A_MOMENT_S)
        await client.good(*leases[: MANY_EXITS // 2 + 1])
        await client.blocked(*leases[MANY_EXITS // 2 + 1 :], retry_in_s=LONG_S)
        assert not (await client.lane()).is_site_blocking
        assert (await client.pool()).cooling == MANY_EXITS // 2 - 1

    async def test_nor_are_blocks_of_a_few_exits(self, backend: Backend) -> None:
        client = await begin(backend, exits=BLOCKED_EXITS, concurrency=20)
        leases = await client.take(40)
        spared = exits_of(leases)[0]
        others = [lease for lease in leases if exits_of([lease]) != [spared]]
        await backend.advance(A_MOMENT_S)
        await client.blocked(*others[:20], retry_in_s=LONG_S)
        assert not (await client.lane()).is_site_blocking

    async def test_unless_there_are_no_more(self, backend: Backend) -> None:
        client = await begin(backend, exits=1, concurrency=20)
        await block_all(backend, client)
        assert (await client.lane()).is_site_blocking

    async def test_nor_are_blocks_that_come_slowly(self, backend: Backend) -> None:
        client = await begin(backend)
        for _ in range(WINDOW_ANSWERS + 2):
            lease = await client.lease_one()
            await backend.advance(A_MOMENT_S)
            await client.blocked(lease, retry_in_s=LONG_S)
            await backend.advance(WINDOW_S / 5)
        assert not (await client.lane()).is_site_blocking

    async def test_other_hosts_notice_nothing(self, backend: Backend) -> None:
        client = await begin(backend)
        await block_all(backend, client)
        await client.add(*laned_pages(3, SECOND_HOST))
        assert {lease.task.site for lease in await client.take()} == {SECOND_HOST}

    async def test_last_over_a_restart(self, backend: Backend) -> None:
        client = await begin(backend)
        await block_all(backend, client)
        await backend.reopen()
        client = exit_client(backend)
        assert (await client.lane()).is_site_blocking
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S


class TestTiers:
    async def test_go_up_where_the_exits_are_blocked(self, backend: Backend) -> None:
        client = await tiered(backend)
        assert await pool_of_next(client) == DC
        await block_all(backend, client)
        lane = await client.lane()
        assert (lane.tier_pool, lane.is_site_blocking) == (RES, False)
        assert (await client.host()).penalty_s == 0.0, "the host is not to blame"
        await settle(backend)
        assert await pool_of_next(client) == RES
        await client.add(*laned_pages(1, SECOND_HOST))
        found = {lease.task.site: lease.lent for lease in await client.take() if lease.lent}
        assert (found[HOST].pool, found[SECOND_HOST].pool) == (RES, DC)

    async def test_quarantine_none_for_the_block_that_leads_up(self, backend: Backend) -> None:
        client = await tiered(backend)
        await block_all(backend, client)
        assert (await client.pool()).cooling == WINDOW_ANSWERS - 1

    async def test_never_for_other_failures(self, backend: Backend) -> None:
        client = await tiered(backend)
        for verdict in (Verdict.DROPPED, Verdict.DEAD, Verdict.RETRY):
            leases = await client.take(12)
            await backend.advance(A_MOMENT_S)
            for lease in leases:
                await client.end(lease, verdict, retry_in_s=LONG_S, passage=GOOD)
            await settle(backend)
        assert (await client.lane()).tier_pool == DC

    async def test_are_only_for_workers_that_know_the_pool(self, backend: Backend) -> None:
        client = await tiered(backend)
        await block_all(backend, client)
        knows_one, knows_other = (
            another_client(backend, pool, pools=(pool,)) for pool in (DC, RES)
        )
        for _ in range(20):
            await backend.advance(BUSY_WAIT_S / 2)
            assert await knows_one.take() == []
            if leases := await knows_other.take():
                break
        assert set(pools_of(leases)) == {RES}

    async def test_are_left_again_after_good_probes(self, backend: Backend) -> None:
        client = await tiered(backend)
        await block_all(backend, client)
        for number in range(GOOD_PROBES):
            await backend.advance(PROBE_EVERY_S / 2)
            assert await pool_of_next(client) == RES, number
            await backend.advance(PROBE_EVERY_S / 2 + 1.0)
            leases = await client.take(3)
            assert pools_of(leases) == [DC, RES, RES], "one of them is a probe"
            await client.good(*leases)
        await settle(backend)
        assert (await client.lane()).tier_pool == DC
        assert await pool_of_next(client) == DC

    async def test_a_blocked_probe_begins_anew(self, backend: Backend) -> None:
        client = await tiered(backend)
        await block_all(backend, client)
        for number in range(2 * GOOD_PROBES - 1):
            await backend.advance(PROBE_EVERY_S + 1.0)
            probe = await client.lease_one()
            assert pools_of([probe]) == [DC]
            await backend.advance(A_MOMENT_S)
            if number == GOOD_PROBES - 1:
                await client.blocked(probe, retry_in_s=LONG_S)
            else:
                await client.good(probe)
        assert (await client.lane()).tier_pool == RES
        await backend.advance(PROBE_EVERY_S + 1.0)
        await client.good(await client.lease_one())
        assert (await client.lane()).tier_pool == DC

    async def test_what_left_before_is_no_probe(self, backend: Backend) -> None:
        client = await tiered(backend, exits=20)
        late = await client.take(GOOD_PROBES)
        await block_all(backend, client)
        await client.good(*late)
        assert (await client.lane()).tier_pool == RES

    async def test_of_a_pool_that_is_not_known_are_none(self, backend: Backend) -> None:
        client = await begin(backend, escalate_to=RES)
        await block_all(backend, client)
        lane = await client.lane()
        assert (lane.tier_pool, lane.is_site_blocking) == (DC, True)

    async def test_never_past_the_budget(self, backend: Backend) -> None:
        """When the budget is spent, the cheaper exits are used again."""
        client = await tiered(backend, per_request=1.0, budget=3.0)
        await block_all(backend, client)
        await backend.advance(COOL_FIRST_S)
        leases = await client.take(9)
        assert pools_of(leases).count(RES) == 3
        await client.good(*leases)
        assert (await client.pool(RES)).spent.spent == pytest.approx(3.0)
        await settle(backend)
        assert set(pools_of(await client.take(9))) == {DC}

    async def test_not_where_there_is_nothing_left_to_spend(self, backend: Backend) -> None:
        client = await tiered(backend, per_request=1.0, budget=0.5)
        await block_all(backend, client)
        lane = await client.lane()
        assert (lane.tier_pool, lane.is_site_blocking) == (DC, True)
        assert (await client.host()).penalty_s == PUSHBACK_FIRST_S

    async def test_one_above_the_other(self, backend: Backend) -> None:
        client = await begin(backend, exits=12, escalate_to=RES)
        client.pools = (DC, RES, "mobile")
        await put_pool(client.frontier, 12, RES, timeout_s=LONG_S, escalate_to="mobile")
        await put_pool(client.frontier, 12, "mobile", timeout_s=LONG_S, escalate_to=DC)
        for pool in (RES, "mobile"):
            await block_all(backend, client)
            assert (await client.lane()).tier_pool == pool
            await settle(backend)
        await block_all(backend, client)
        lane = await client.lane()
        assert (lane.tier_pool, lane.is_site_blocking) == ("mobile", True), "there is no other"

    async def test_outlive_a_restart(self, backend: Backend) -> None:
        client = await tiered(backend)
        await block_all(backend, client)
        await backend.reopen()
        client = exit_client(backend)
        await settle(backend)
        assert await pool_of_next(client) == RES
