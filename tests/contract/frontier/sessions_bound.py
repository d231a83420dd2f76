"""Identities: an account whose exit can no longer be used gets another one, and logs in again."""

from __future__ import annotations

from shoal.core.exit_policy import COOL_FIRST_S
from shoal.core.exits import Blame, ExitEntry
from shoal.frontier.values import Verdict
from support.exits import (
    ASK_EVERY_S,
    BLOCK,
    DC,
    LONG_S,
    RES,
    exit_id,
    exits_of,
    pass_time,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend, pages
from support.sessions import (
    ALICE,
    BOB,
    GROUP,
    HOLD_S,
    JAR,
    begin_by_exits,
    identity,
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


class TestAnotherExit:
    async def test_where_the_host_blocks_it(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        bound = await logged_in_by(backend, client)
        lease = await next_of(client)
        await backend.advance(A_MOMENT_S)
        await client.end(lease, Verdict.RETRY, blocked=1, passage=BLOCK)
        await settle(backend)
        lease = await next_of(client)
        assert exits_of([lease]) == list({exit_id(0, RES), exit_id(1, RES)} - {bound})
        found = identity_of(lease)
        assert (found.is_in, found.jar) == (False, JAR), "from another address it logs in anew"
        assert (await client.account()).state.is_in is False
        await client.log_in(lease)
        await backend.advance(COOL_FIRST_S)
        lease = await next_of(client)
        assert exits_of([lease]) != [bound], "nor does it go back"

    async def test_of_a_gateway_the_same_one_is_another(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=1, is_gateway=True)
        await logged_in_by(backend, client)
        lease = await next_of(client)
        await backend.advance(A_MOMENT_S)
        await client.end(lease, Verdict.RETRY, blocked=1, passage=BLOCK)
        await settle(backend)
        lease = await next_of(client)
        assert lease.lent is not None
        assert (lease.lent.session, identity_of(lease).is_in) == (1, False)
        await client.log_in(lease)
        await settle(backend)
        assert identity_of(await next_of(client)).is_in

    async def test_if_it_is_out(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        bound = await logged_in_by(backend, client)
        lease = await next_of(client)
        await backend.advance(A_MOMENT_S)
        await client.faulty(lease, blame=Blame.FORGED)
        await settle(backend)
        lease = await next_of(client)
        assert exits_of([lease]) != [bound]
        assert not identity_of(lease).is_in

    async def test_if_it_is_not_listed_any_more(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=1)
        await logged_in_by(backend, client)
        others = [ExitEntry(exit_id(7, RES))]
        await client.frontier.put_pool((await client.pool(RES)).rules, others)
        await settle(backend)
        lease = await next_of(client)
        assert exits_of([lease]) == [exit_id(7, RES)]
        assert not identity_of(lease).is_in

    async def test_if_the_group_goes_by_another_pool(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        await logged_in_by(backend, client)
        await put_pool(client.frontier, 1, DC)
        await put_group(client.frontier, ALICE, through=DC)
        await settle(backend)
        lease = await next_of(client)
        assert exits_of([lease]) == [exit_id(0, DC)]
        assert not identity_of(lease).is_in

    async def test_if_the_group_goes_by_one_at_last(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(9))
        await client.log_in(await client.lease_one())
        await put_pool(client.frontier, 1, RES)
        await put_group(client.frontier, ALICE, through=RES)
        await settle(backend)
        lease = await next_of(client)
        assert (exits_of([lease]), identity_of(lease).is_in) == ([exit_id(0, RES)], False)

    async def test_not_for_what_the_site_still_works_on(self, backend: Backend) -> None:
        """One of two requests of an account is blocked while the other is still in flight."""
        client = session_client(backend)
        await put_pool(client.frontier, 2, RES, timeout_s=LONG_S)
        await put_group(client.frontier, ALICE, through=RES, concurrency=2)
        await client.begin(*session_pages(20))
        await logged_in_by(backend, client)
        first, second = await client.take()
        await backend.advance(A_MOMENT_S)
        await client.end(first, Verdict.RETRY, blocked=1, passage=BLOCK)
        await settle(backend)
        assert await client.take() == []
        await client.done(second)
        await settle(backend)
        assert not identity_of(await next_of(client)).is_in

    async def test_those_whose_exit_is_well_go_first(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, ALICE, BOB, exits=3)
        await client.log_all_in(backend, 2)
        leases = await client.take()
        await backend.advance(A_MOMENT_S)
        await client.end(leases[0], Verdict.RETRY, retry_in_s=LONG_S, blocked=1, passage=BLOCK)
        await client.done(leases[1])
        for _ in range(3):
            await settle(backend)
            lease = await client.lease_one()
            assert names_of([lease]) == names_of([leases[1]]), "nobody has to log in"
            await client.done(lease)

    async def test_without_any_what_waits_dies_with_the_reason(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_pool(client.frontier, 0, RES)
        await put_group(client.frontier, ALICE, through=RES, timeout_s=TIMEOUT_S)
        await client.begin(*session_pages(2), *pages(1))
        assert names_of(await client.take()) == ["nobody"]
        await pass_time(backend, client, TIMEOUT_S - 2 * ASK_EVERY_S)
        assert (await client.stats()).dead == 0
        await pass_time(backend, client, 4 * ASK_EVERY_S)
        reasons = {dead.reason for dead in await client.frontier.dead(client.crawl, 9)}
        assert reasons == {"no exit of pool res could be used for 200s: it has no exits"}

    async def test_exits_that_come_later_are_used_soon(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, through=RES)
        await client.begin(*session_pages(2), *session_pages(2, session=identity(ALICE)))
        assert await client.take() == []
        await put_pool(client.frontier, 1, RES)
        await settle(backend)
        assert exits_of(await client.take()) == [exit_id(0, RES)]

    async def test_whoever_holds_an_account_is_told_of_its_exit(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        bound = await logged_in_by(backend, client)
        held = await client.hold()
        assert held.lent is not None
        assert (held.lent.exit, held.lent.pool, held.identity.is_in) == (bound, RES, True)
        await client.frontier.let_go(held, login())
        await client.assert_all_free(GROUP, RES)
        await settle(backend)
        assert exits_of([await next_of(client)]) == [bound]

    async def test_unless_nothing_is_to_be_sent(self, backend: Backend) -> None:
        client = await begin_by_exits(backend)
        bound = await logged_in_by(backend, client)
        await put_pool(client.frontier, 0, RES)
        held = await client.frontier.hold(identity(ALICE), None, HOLD_S)
        assert held is not None
        assert held.lent is None
        assert (await client.account()).state.through == bound

    async def test_none_is_held_without_an_exit(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=0)
        assert await client.frontier.hold(identity(ALICE), HOST, HOLD_S) is None
        await client.assert_all_free(GROUP)
        await put_pool(client.frontier, 1, RES)
        await settle(backend)
        assert len(await client.take()) == 1, "nobody has kept it"
