"""Identities: accounts that use exits, each its own."""

from __future__ import annotations

import pytest

from shoal.core.exits import Blame
from shoal.core.identity_policy import LOST_REST_S
from shoal.frontier.values import Control, Lease
from support.exits import (
    DC,
    LONG_S,
    RES,
    SECOND_HOST,
    exit_id,
    exits_of,
    laned_pages,
    pass_time,
    settle,
)
from support.frontiers import A_MOMENT_S, Backend
from support.sessions import (
    ALICE,
    BOB,
    CAROL,
    GROUP,
    SessionClient,
    another_session_client,
    begin_by_exits,
    identity_of,
    logged_in_by,
    login,
    names_of,
    next_of,
    put_group,
    session_client,
    session_pages,
)

TIMEOUT_S = 200.0
HOLD_S = 60.0


PACE_S = 50.0


async def in_flight_by_an_exit_that_is_out(
    backend: Backend, exits: int
) -> tuple[SessionClient, Lease, SessionClient]:
    """A request of the only account is in flight, through an exit that has failed since then. The
    same worker also has a task for the account in another crawl."""
    client = await begin_by_exits(backend, exits=exits, interval_s=PACE_S)
    await put_group(client.frontier, ALICE, through=RES, concurrency=2, timeout_s=TIMEOUT_S)
    await client.log_in(await next_of(client))
    await backend.advance(PACE_S + A_MOMENT_S)
    stays = await next_of(client)
    await backend.advance(PACE_S + A_MOMENT_S)
    await client.faulty(await next_of(client), blame=Blame.FORGED)
    other = session_client(backend, crawl="other")
    await other.begin(*session_pages(1, SECOND_HOST))
    return client, stays, other


class TestThrough:
    async def test_a_lease_names_the_exit_too(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        lease = await next_of(client)
        assert names_of([lease]) == [ALICE]
        assert lease.lent is not None
        assert lease.lent.pool == RES
        assert (lease.lent.blocks, lease.lent.tried) == (0, 0)
        state = (await client.account()).state
        assert (state.through, state.through_session) == (lease.lent.exit, 0)
        assert sum(exit_.leased for exit_ in await client.frontier.exits(RES)) == 1

    async def test_an_account_keeps_its_exit(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=5)
        bound = await logged_in_by(backend, client)
        for _ in range(8):
            lease = await next_of(client)
            assert (exits_of([lease]), identity_of(lease).is_in) == ([bound], True)
            await client.done(lease)
            await settle(backend)

    async def test_each_has_its_own_while_there_are_enough(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, ALICE, BOB, CAROL, exits=3)
        leases = await client.take()
        assert sorted(exits_of(leases)) == [exit_id(n, RES) for n in range(3)]
        by = dict(zip(names_of(leases), exits_of(leases), strict=True))
        await client.log_in(*leases)
        await settle(backend)
        again = await client.take()
        assert dict(zip(names_of(again), exits_of(again), strict=True)) == by

    async def test_both_are_free_when_the_lease_ends(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, ALICE, BOB)
        await client.log_in(*await client.take())
        await client.assert_all_free(GROUP, RES)
        await settle(backend)
        await client.done(*await client.take())
        await client.assert_all_free(GROUP, RES)
        requests = [exit_.requests for exit_ in await client.frontier.exits(RES)]
        assert requests == [2, 2]

    @pytest.mark.parametrize("how", ["release", "cancel", "forget"])
    async def test_both_are_free_when_it_is_lost(self, backend: Backend, how: str) -> None:
        client = await begin_by_exits(backend, ALICE, BOB)
        assert len(await client.take()) == 2
        if how == "release":
            await client.frontier.release(client.crawl, client.worker)
        elif how == "cancel":
            await client.control(Control.CANCEL)
        else:
            await client.frontier.forget(client.crawl)
        await client.assert_all_free(GROUP, RES)

    async def test_a_lost_account_comes_back_with_its_exit(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=5)
        bound = await logged_in_by(backend, client)
        await client.take()
        await client.frontier.release(client.crawl, client.worker)
        await backend.advance(LOST_REST_S + A_MOMENT_S)
        lease = await next_of(client)
        assert (exits_of([lease]), identity_of(lease).is_in) == ([bound], True)

    async def test_an_account_waits_for_its_exit(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=2, concurrency=1)
        bound = await logged_in_by(backend, client)
        other = another_session_client(backend, crawl="other")
        await other.begin(*laned_pages(2, pool=RES))
        plain = {exits_of([lease])[0]: lease for lease in await other.take()}
        assert set(plain) == {exit_id(0, RES), exit_id(1, RES)}
        free = next(lease for by, lease in plain.items() if by != bound)
        await other.good(free)
        await settle(backend)
        assert await client.take() == [], "another exit would do for others"
        await other.good(plain[bound])
        await settle(backend)
        assert exits_of([await next_of(client)]) == [bound]

    async def test_it_waits_for_what_is_in_flight_with_it_before_it_gets_another(
        self, backend: Backend
    ) -> None:
        """It does not matter how long the other exits have to wait."""
        client, lease, other = await in_flight_by_an_exit_that_is_out(backend, exits=3)
        await other.add(*laned_pages(1, SECOND_HOST, pool=RES, priority=9))
        assert len(await other.take()) == 1, "one of the others has to wait for long"
        await settle(backend)
        assert await other.take() == []
        await client.done(lease)
        await settle(backend)
        (lease,) = await other.take()
        assert (names_of([lease]), identity_of(lease).is_in) == ([ALICE], False)

    async def test_it_starves_where_all_exits_are_out(self, backend: Backend) -> None:
        """A request that is in flight with it does not prevent that."""
        _, _, other = await in_flight_by_an_exit_that_is_out(backend, exits=1)
        await pass_time(backend, other, TIMEOUT_S + 60.0)
        (dead,) = await other.frontier.dead(other.crawl, 9)
        assert "1 exit, 1 out" in dead.reason

    async def test_the_exit_has_one_clock_for_all(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=1, interval_s=60.0)
        await client.add(*laned_pages(3, SECOND_HOST, pool=RES))
        lease = await next_of(client)
        assert lease.paced
        await client.said(lease, login() if lease.identity else None)
        assert await client.take() == []
        await backend.advance(59.0)
        assert await client.take() == []
        await backend.advance(1.0 + A_MOMENT_S)
        assert len(await client.take()) == 1

    async def test_the_pair_has_its_clock_too(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=1, pair_interval_s=60.0)
        await client.log_in(await next_of(client))
        await backend.advance(59.0)
        assert await client.take() == []
        await backend.advance(1.0 + A_MOMENT_S)
        assert len(await client.take()) == 1

    async def test_within_the_budget_of_the_pool(self, backend: Backend) -> None:
        money = {"per_request": 1.0, "budget": 2.0, "budget_period_s": LONG_S}
        client = await begin_by_exits(backend, ALICE, BOB, CAROL, exits=3, **money)
        leases = await client.take()
        assert len(leases) == 2
        await client.log_in(*leases)
        await settle(backend)
        assert await client.take() == []
        assert (await client.pool(RES)).spent.spent == pytest.approx(2.0)

    async def test_not_for_who_does_not_know_the_exits(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        stranger = another_session_client(backend, "stranger", pools=(GROUP, DC))
        for _ in range(3):
            assert (await stranger.ask()).leases == []
        assert len(await client.take()) == 1
