"""Identities: failing logins, and tasks that wait for accounts that cannot be used."""

from __future__ import annotations

import pytest

from shoal.core.exit_policy import STARVED_BATCH, UNSEEN_S
from shoal.core.identity_policy import BANNED_S, RESTS_S, starved_reason
from shoal.frontier.values import Control, CrawlState, TaskState
from support.exits import ASK_EVERY_S, HOURS, LONG_S, pass_time, settle
from support.frontiers import A_MOMENT_S, HOST, Backend
from support.sessions import (
    ALICE,
    BOB,
    GROUP,
    OUT,
    SHOP,
    SessionClient,
    another_session_client,
    identity,
    identity_of,
    logged_in,
    names_of,
    put_group,
    session_client,
    session_pages,
)

TIMEOUT_S = 200.0


async def begin(backend: Backend, *accounts: str, count: int = 9) -> SessionClient:
    client = session_client(backend)
    await put_group(client.frontier, *(accounts or (ALICE,)))
    await client.begin(*session_pages(count))
    return client


async def ban(backend: Backend, client: SessionClient) -> None:
    """Let all logins fail until none is tried any more."""
    for rest_s in (*RESTS_S, 0.0):
        await client.failed(*await client.take())
        await backend.advance(rest_s + A_MOMENT_S)


class TestLoginsThatFail:
    async def test_the_account_rests_longer_each_time_then_it_is_banned(
        self, backend: Backend
    ) -> None:
        client = await begin(backend)
        for number, rest_s in enumerate(RESTS_S, 1):
            (lease,) = await client.take()
            await client.failed(lease)
            state = (await client.account()).state
            assert (state.failures, state.is_banned) == (number, False)
            assert state.why == "the password is wrong"
            await backend.advance(rest_s - 1.0)
            assert await client.take() == [], "too early"
            await backend.advance(1.0 + A_MOMENT_S)
        await client.failed(*await client.take())
        account = await client.account()
        assert account.state.is_banned
        assert account.exit.out_until > BANNED_S / 2

    async def test_others_go_on(self, backend: Backend) -> None:
        client = await begin(backend, ALICE, BOB)
        first, second = await client.take()
        await client.failed(first)
        await client.log_in(second)
        for _ in range(3):
            await settle(backend)
            leases = await client.take()
            assert names_of(leases) == names_of([second])
            await client.done(*leases)

    async def test_a_login_that_succeeds_makes_up_for_all(self, backend: Backend) -> None:
        client = await begin(backend)
        for rest_s in RESTS_S:
            await client.failed(await client.lease_one())
            await backend.advance(rest_s + A_MOMENT_S)
        await client.log_in(await client.lease_one())
        state = (await client.account()).state
        assert (state.failures, state.is_banned, state.why) == (0, False, "")
        await client.said(await client.lease_one(), OUT)
        await client.failed(await client.lease_one())
        await backend.advance(RESTS_S[0] + A_MOMENT_S)
        assert len(await client.take()) == 1, "it is the first one again"

    async def test_do_not_count_against_the_task(self, backend: Backend) -> None:
        client = await begin(backend, count=1)
        await client.failed(await client.lease_one())
        await backend.advance(RESTS_S[0] + A_MOMENT_S)
        lease = await client.lease_one()
        assert (identity_of(lease).expired, lease.task.retry_count) == (0, 0)

    async def test_are_known_to_all_crawls(self, backend: Backend) -> None:
        client, other = await begin(backend), another_session_client(backend, crawl="other")
        await other.begin(*session_pages(1))
        await client.failed(await client.lease_one())
        assert await other.take() == []
        await backend.advance(RESTS_S[0] + A_MOMENT_S)
        assert len(await other.take()) == 1


class TestStarvingForAccounts:
    async def test_if_all_are_banned_what_waits_dies_at_once(self, backend: Backend) -> None:
        client = await begin(backend, ALICE, BOB, count=STARVED_BATCH + 20)
        await client.control(Control.SEAL)
        await ban(backend, client)
        await pass_time(backend, client, UNSEEN_S)
        stats = await client.stats()
        assert (stats.dead, stats.state) == (STARVED_BATCH + 20, CrawlState.FINISHED)
        reason = starved_reason(SHOP, LONG_S, listed=2, resting=0, banned=2)
        assert {dead.reason for dead in await client.frontier.dead(client.crawl, 999)} == {reason}
        assert reason == "no account of session shop can be used: 2 accounts, 2 banned"

    async def test_the_one_that_is_asked_for_is_banned(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await client.begin(*session_pages(3, session=identity(ALICE)))
        await ban(backend, client)
        await client.add(*session_pages(1))
        await pass_time(backend, client, UNSEEN_S)
        assert (await client.stats()).dead == 3
        (dead, *_) = await client.frontier.dead(client.crawl, 9)
        assert dead.reason == "no account of session shop#alice can be used: 1 account, 1 banned"
        assert names_of(await client.take()) == [BOB]

    async def test_if_some_rest_it_dies_when_its_time_has_come(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, timeout_s=TIMEOUT_S)
        await client.begin(logged_in(f"{HOST}/"))
        for rest_s in (RESTS_S[0], RESTS_S[1]):
            for _ in range(2):
                lease = await client.lease_one()
                await client.failed(lease)
            assert await client.take() == []
            if rest_s == RESTS_S[0]:
                await backend.advance(rest_s + A_MOMENT_S)
        await pass_time(backend, client, TIMEOUT_S - 2 * ASK_EVERY_S)
        assert (await client.stats()).dead == 0, "too early"
        await pass_time(backend, client, 4 * ASK_EVERY_S)
        (dead,) = await client.frontier.dead(client.crawl, 9)
        wanted = starved_reason(SHOP, TIMEOUT_S, listed=2, resting=2, banned=0)
        assert dead.reason == wanted
        assert wanted.endswith("could be used for 200s: 2 accounts, 2 resting")

    @pytest.mark.parametrize("session", [SHOP, identity("zoe"), identity("")])
    async def test_if_there_is_none(self, backend: Backend, session: str) -> None:
        client = session_client(backend)
        accounts = () if session == SHOP else (ALICE,)
        await put_group(client.frontier, *accounts, timeout_s=TIMEOUT_S)
        task = logged_in(f"{HOST}/", session)
        await client.begin(task)
        await pass_time(backend, client, TIMEOUT_S - 2 * ASK_EVERY_S)
        assert (await client.stats()).dead == 0, "accounts may come"
        assert (await client.lane(pool=f"@{session}")).starved_s > 100.0
        await pass_time(backend, client, 4 * ASK_EVERY_S)
        assert await client.state(task) is TaskState.DEAD
        (dead,) = await client.frontier.dead(client.crawl, 9)
        assert dead.reason == f"no account of session {session} can be used: it has none"

    async def test_not_while_they_are_merely_busy(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend, crawl="other")
        await put_group(client.frontier, ALICE, timeout_s=TIMEOUT_S, concurrency=2)
        await other.begin(*session_pages(1))
        await other.log_in(await other.lease_one())
        await other.take()
        await client.begin(*session_pages(1), *session_pages(1, session=identity(ALICE)))
        await pass_time(backend, client, 3 * TIMEOUT_S)
        assert (await client.stats()).dead == 0
        assert (await client.lane(pool=GROUP)).starved_s == 0.0

    async def test_accounts_that_come_later_are_used_soon(self, backend: Backend) -> None:
        client = session_client(backend)
        await client.begin(*session_pages(3), *session_pages(3, session=identity(ALICE)))
        assert await client.take() == []
        await put_group(client.frontier)
        assert await client.take() == []
        await put_group(client.frontier, ALICE, BOB)
        await settle(backend)
        assert sorted(names_of(await client.take())) == [ALICE, BOB]

    async def test_one_that_is_not_listed_is_not_used(self, backend: Backend) -> None:
        client = await begin(backend, ALICE, BOB)
        lease = await client.lease_one()
        await put_group(client.frontier, *({ALICE, BOB} - set(names_of([lease]))))
        await client.log_in(lease)
        await backend.advance(HOURS)
        assert names_of(await client.take()) != names_of([lease])
