"""Identities: accounts are lent with leases, each to one worker at a time; and in which order."""

from __future__ import annotations

import pytest

from shoal.core.identities import LeasedIdentity
from shoal.frontier.values import Control, CrawlState, TaskState
from support.exits import DC, SECOND_HOST, laned_pages, put_pool, settle
from support.frontiers import A_MOMENT_S, HOST, Backend, entry, outcome, pages
from support.sessions import (
    AGENT,
    ALICE,
    BOB,
    CAROL,
    FORUM,
    FORUM_GROUP,
    GROUP,
    JAR,
    LOGIN_URL,
    OUT,
    SHOP,
    another_session_client,
    identity,
    identity_of,
    logged_in,
    names_of,
    put_group,
    session_client,
    session_pages,
)


class TestIdentities:
    async def test_a_lease_names_one(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(logged_in(f"{HOST}/with"), entry(f"{HOST}/without"))
        leases = {lease.task.url: lease for lease in await client.take()}
        lease = leases[f"http://{HOST}/with"]
        assert lease.identity == LeasedIdentity(identity(ALICE))
        assert (lease.lent, lease.shared, lease.task.session) == (None, False, SHOP)
        assert leases[f"http://{HOST}/without"].identity is None
        assert (await client.account()).exit.leased == 1
        assert (await client.account()).state.worker == client.worker

    async def test_one_that_has_logged_in_says_so(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1))
        lease = await client.lease_one()
        await client.log_in(lease)
        lease = await client.lease_one()
        wanted = LeasedIdentity(identity(ALICE), True, JAR, AGENT, LOGIN_URL)
        assert lease.identity == wanted
        await client.done(lease)
        assert await client.state(lease) is TaskState.DONE
        account = await client.account()
        assert (account.exit.requests, account.exit.leased, account.state.logins) == (2, 0, 1)
        await client.assert_all_free()

    async def test_a_task_without_a_session_goes_as_ever(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier)
        await put_pool(client.frontier, 1)
        none = entry(f"{HOST}/none", session="none")
        await client.begin(*session_pages(9), *pages(3), *laned_pages(2), none)
        leases = await client.take()
        assert names_of(leases) == ["nobody"] * 6
        assert (await client.lane(pool=GROUP)).waiting == 9

    @pytest.mark.parametrize("pools", [(), (DC,), (FORUM_GROUP,)])
    async def test_not_for_who_does_not_know_the_group(
        self, backend: Backend, pools: tuple[str, ...]
    ) -> None:
        client, knows = session_client(backend, pools=pools), another_session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1), logged_in(f"{HOST}/a", identity(ALICE)))
        for _ in range(3):
            assert (await client.ask()).leases == []
        assert names_of(await knows.take()) == [ALICE]

    async def test_not_for_who_has_no_slot(self, backend: Backend) -> None:
        client = session_client(backend, slots=0)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1))
        assert await client.take() == []

    async def test_of_two_groups(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await put_group(client.frontier, ALICE, group=FORUM)
        await client.begin(*session_pages(2), *session_pages(2, session=FORUM))
        leases = await client.take()
        found = sorted(identity_of(lease).name for lease in leases)
        assert found == [identity(ALICE, FORUM), identity(ALICE)]

    async def test_outlive_a_restart(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2))
        await client.log_in(await client.lease_one())
        await backend.reopen()
        client = session_client(backend)
        lease = await client.lease_one()
        assert (identity_of(lease).is_in, identity_of(lease).jar) == (True, JAR)

    async def test_never_show_their_cookies(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2))
        await client.log_in(await client.lease_one())
        lease = await client.lease_one()
        shown = repr((lease, await client.frontier.accounts(SHOP, jars=True), outcome(lease)))
        assert JAR.decode() not in shown


class TestOneAtATime:
    async def test_one_request_is_in_flight_with_an_account(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(3), *session_pages(3, SECOND_HOST))
        (lease,) = await client.take()
        for each in (client, other):
            assert await each.take() == []
        grant = await other.ask()
        assert grant.wait_s is not None, "it may end at any moment"
        await client.log_in(lease)
        await settle(backend)
        (lease,) = await other.take()
        assert identity_of(lease).is_in
        assert await client.take() == []

    async def test_several_accounts_are_used_at_once(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, CAROL)
        await client.begin(*session_pages(9))
        leases = await client.take()
        assert sorted(names_of(leases)) == [ALICE, BOB, CAROL]

    async def test_more_at_once_if_the_group_allows_it(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend)
        await put_group(client.frontier, ALICE, concurrency=2)
        await client.begin(*session_pages(9))
        leases = await client.take()
        assert len(leases) == 1, "to log in, one is enough"
        await client.log_in(*leases)
        await settle(backend)
        first = await client.lease_one()
        assert await other.take() == [], "all with one worker, which has the one jar"
        await settle(backend)
        (second,) = await client.take()
        assert names_of([first, second]) == [ALICE, ALICE]
        await client.done(first)
        await settle(backend)
        assert await other.take() == []
        await client.done(second)
        await settle(backend)
        assert names_of(await other.take()) == [ALICE, ALICE]
        assert await client.take() == []

    async def test_whoever_has_the_others_gets_those(self, backend: Backend) -> None:
        """An account that is with another worker does not hide those that are free."""
        client, other = session_client(backend), another_session_client(backend)
        await put_group(client.frontier, ALICE, BOB, concurrency=2)
        await client.begin(*session_pages(9))
        await client.log_all_in(backend, 2)
        first = await client.lease_one()
        found = names_of(await other.take())
        assert len(found) == 2
        assert set(found) == {ALICE, BOB} - set(names_of([first]))
        await settle(backend)
        assert names_of(await client.take()) == names_of([first])

    async def test_two_crawls_never_share_one_at_once(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend, crawl="other")
        await put_group(client.frontier, ALICE)
        for each in (client, other):
            await each.begin(*session_pages(5))
        for _ in range(3):
            for mine, theirs in ((client, other), (other, client)):
                (lease,) = await mine.take()
                assert await theirs.take() == []
                await mine.said(lease, None)
                await settle(backend)

    async def test_what_two_crawls_know_of_an_account_is_the_same(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend, crawl="other")
        await put_group(client.frontier, ALICE)
        for each in (client, other):
            await each.begin(*session_pages(5))
        await client.log_in(await client.lease_one())
        (lease,) = await other.take()
        assert (identity_of(lease).is_in, identity_of(lease).jar) == (True, JAR)

    async def test_beside_the_hosts_room_and_rate(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, CAROL)
        await client.begin(*session_pages(9), *pages(9), rate="1/h")
        assert len(await client.take()) == 1
        narrow = another_session_client(backend, crawl="other")
        await narrow.begin(*session_pages(9), concurrency_per_host=2)
        assert len(await narrow.take()) == 2

    async def test_within_max_pages(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, CAROL)
        await client.begin(*session_pages(9), max_pages=2)
        await client.control(Control.SEAL)
        leases = await client.take()
        assert len(leases) == 2
        await client.done(*leases)
        assert (await client.stats()).state is CrawlState.FINISHED
        await client.assert_all_free()


class TestWhoGoesFirst:
    async def test_those_that_are_logged_in(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await client.begin(*session_pages(9))
        lease = await client.lease_one()
        await client.log_in(lease)
        for _ in range(3):
            await backend.advance(1.0)
            again = await client.lease_one()
            assert names_of([again]) == names_of([lease]), "nobody else has to log in"
            await client.done(again)
        await settle(backend)
        assert sorted(names_of(await client.take())) == [ALICE, BOB], "unless there is need"

    async def test_of_those_the_one_that_was_not_used_for_longest(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, CAROL)
        await client.begin(*session_pages(20))
        await client.log_all_in(backend, 3)
        used = list[str]()
        for _ in range(7):
            await backend.advance(A_MOMENT_S)
            lease = await client.lease_one()
            used += names_of([lease])
            await client.done(lease)
        assert sorted(used[:3]) == [ALICE, BOB, CAROL]
        assert used[3:] == [*used[:3], used[0]]

    async def test_one_that_was_logged_out_goes_last(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await client.begin(*session_pages(9))
        await client.log_all_in(backend, 2)
        lease = await client.lease_one()
        await client.said(lease, OUT)
        (ended,) = names_of([lease])
        for _ in range(3):
            await backend.advance(1.0)
            lease = await client.lease_one()
            assert names_of([lease]) != [ended]
            await client.done(lease)
