"""Identities: listing accounts, and holding one so that no worker gets it for a while."""

from __future__ import annotations

import pytest

from shoal.core.identities import IdentityReport, LeasedIdentity
from shoal.core.identity_policy import RESTS_S
from shoal.frontier.port import Held
from support.exits import LONG_S, RES, put_pool, settle
from support.frontiers import A_MOMENT_S, HOST, Backend
from support.sessions import (
    AGENT,
    ALICE,
    BOB,
    CAROL,
    FORUM,
    GROUP,
    HOLD_S,
    JAR,
    LOGIN_URL,
    OUT,
    SHOP,
    failure,
    identity,
    identity_of,
    login,
    names_of,
    put_group,
    session_client,
    session_pages,
)


class TestAccounts:
    async def test_are_told_by_name(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, CAROL, ALICE, BOB)
        await client.begin(*session_pages(1))
        lease = await client.lease_one()
        accounts = await client.frontier.accounts(SHOP, jars=True)
        assert [each.name for each in accounts] == [identity(n) for n in (ALICE, BOB, CAROL)]
        assert [each.exit.leased for each in accounts] == [
            int(each.name == identity_of(lease).name) for each in accounts
        ]
        assert not any(each.state.is_in or each.jar for each in accounts)
        await client.log_in(lease)
        account = await client.account(*names_of([lease]))
        assert (account.jar, account.state.is_in, account.state.worker) == (JAR, True, "")
        assert not any(each.jar for each in await client.frontier.accounts(SHOP)), "unasked"
        assert (account.state.user_agent, account.state.login_url) == (AGENT, LOGIN_URL)
        assert account.state.login_at == pytest.approx(backend.clock.now, abs=1.0)

    async def test_of_no_group_are_none(self, backend: Backend) -> None:
        await put_pool(backend.frontier, 1, RES)
        for group in (FORUM, RES, ""):
            assert await backend.frontier.accounts(group) == []

    async def test_those_that_are_not_listed_are_not_told(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await put_group(client.frontier, BOB)
        assert [each.name for each in await client.frontier.accounts(SHOP)] == [identity(BOB)]


class TestHold:
    async def test_keeps_an_account_from_everybody(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2), *session_pages(2, session=identity(ALICE)))
        held = await client.hold()
        assert (held.identity.name, held.identity.is_in, held.lent) == (
            identity(ALICE),
            False,
            None,
        )
        assert await client.take() == []
        assert await client.frontier.hold(identity(ALICE), HOST, HOLD_S) is None
        assert await client.frontier.let_go(held, login())
        await settle(backend)
        (lease,) = await client.take()
        assert (identity_of(lease).is_in, identity_of(lease).jar) == (True, JAR)
        assert identity_of(lease).user_agent == AGENT

    async def test_gives_what_a_lease_would_have(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.told_by_hand(login())
        found = (await client.hold()).identity
        assert (found.is_in, found.jar, found.user_agent) == (True, JAR, AGENT)
        assert found.login_url == LOGIN_URL

    async def test_ends_by_itself(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, timeout_s=HOLD_S / 3)
        await client.begin(*session_pages(2))
        held = await client.hold()
        assert await client.take() == []
        await backend.advance(HOLD_S - 1.0)
        assert await client.take() == []
        assert (await client.stats()).dead == 0, "it is merely busy"
        await backend.advance(1.0 + A_MOMENT_S)
        (lease,) = await client.take()
        assert not await client.frontier.let_go(held, login(b"too late"))
        account = await client.account()
        assert (account.state.is_in, account.jar, account.exit.leased) == (False, b"", 1)
        await client.log_in(lease)

    async def test_lasts_while_somebody_holds_on(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2))
        held: Held | None = await client.hold()
        for _ in range(5):
            await backend.advance(HOLD_S / 2)
            assert held is not None
            held = await client.frontier.hold_on(held, HOLD_S)
            assert await client.take() == []
        await backend.advance(HOLD_S + A_MOMENT_S)
        assert held is not None
        assert await client.frontier.hold_on(held, HOLD_S) is None, "it is over"
        assert len(await client.take()) == 1

    async def test_is_its_holders_alone(self, backend: Backend) -> None:
        """A process whose hold has expired cannot change the next hold."""
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        first = await client.hold()
        await backend.advance(HOLD_S + A_MOMENT_S)
        second = await client.hold()
        assert await client.frontier.hold_on(first, 10 * HOLD_S) is None
        assert not await client.frontier.let_go(first, failure())
        assert (await client.account()).state.failures == 0
        await backend.advance(HOLD_S - 1.0)
        renewed = await client.frontier.hold_on(second, HOLD_S)
        assert renewed is not None
        assert not await client.frontier.let_go(second, failure()), "it has another token by now"
        assert await client.frontier.let_go(renewed, login())

    async def test_is_heeded_though_the_account_is_not_listed_any_more(
        self, backend: Backend
    ) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        held = await client.hold()
        await put_group(client.frontier, BOB)
        await client.frontier.let_go(held, login())
        await put_group(client.frontier, ALICE, BOB)
        account = await client.account()
        assert (account.state.is_in, account.jar) == (True, JAR)
        assert await client.hold(), "it is not held any more"

    async def test_is_not_for_one_that_is_in_use(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, concurrency=2)
        await client.begin(*session_pages(1, session=identity(ALICE)))
        lease = await client.lease_one()
        await client.log_in(lease)
        lease = await client.lease_one()
        assert await client.frontier.hold(identity(ALICE), HOST, HOLD_S) is None
        assert await client.hold(BOB)
        await client.done(lease)
        assert await client.hold()

    @pytest.mark.parametrize("name", ["shop#zoe", "forum#alice", "shop", "res-0000000000", ""])
    async def test_is_not_for_what_is_no_account(self, backend: Backend, name: str) -> None:
        await put_group(backend.frontier, ALICE)
        await put_pool(backend.frontier, 1, RES)
        assert await backend.frontier.hold(name, HOST, HOLD_S) is None
        never = Held(LeasedIdentity(name))
        assert await backend.frontier.hold_on(never, HOLD_S) is None
        assert not await backend.frontier.let_go(never, login())
        assert not any(each.state.is_in for each in await backend.frontier.accounts(SHOP))

    async def test_who_lets_go_without_holding_changes_nothing(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        before = await client.account()
        never = Held(LeasedIdentity(identity(ALICE)))
        assert await client.frontier.hold_on(never, HOLD_S) is None
        for report in (login(), failure(), OUT, IdentityReport(jar=b"mine")):
            assert not await client.frontier.let_go(never, report)
        assert await client.account() == before

    async def test_a_login_that_fails_by_hand_rests_too(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1))
        await client.told_by_hand(failure("captcha"))
        state = (await client.account()).state
        assert (state.failures, state.why) == (1, "captcha")
        await backend.advance(RESTS_S[0] - 1.0)
        assert await client.take() == []
        await backend.advance(1.0 + A_MOMENT_S)
        assert len(await client.take()) == 1

    async def test_neither_a_rest_nor_a_ban_keeps_anybody_from_it(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        for _ in range(len(RESTS_S) + 1):
            await client.told_by_hand(failure())
        assert (await client.account()).state.is_banned
        await client.told_by_hand(login())
        account = await client.account()
        assert (account.state.is_banned, account.exit.out_until) == (False, 0.0)

    async def test_who_logs_out_by_hand_lets_it_begin_anew(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, timeout_s=LONG_S)
        for report in (*[failure()] * (len(RESTS_S) + 1), OUT):
            await client.told_by_hand(report)
        account = await client.account()
        assert (account.state.is_banned, account.state.failures) == (False, 0)
        assert (account.state.is_in, account.exit.out_until) == (False, 0.0)
        await client.begin(*session_pages(1))
        assert names_of(await client.take()) == [ALICE]
        assert (await client.pool(GROUP)).out == 0

    async def test_who_has_found_nothing_leaves_it_as_it_was(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1))
        before = await client.account()
        await client.told_by_hand(IdentityReport())
        assert (await client.account()).state == before.state
        assert len(await client.take()) == 1
