"""Identities: accounts of workers that die and of crawls that end."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from shoal.core.exit_policy import SWEEP_EVERY_S
from shoal.core.identities import IdentityReport, LoginChange
from shoal.core.identity_policy import LOST_REST_S
from shoal.frontier.values import Control, CrawlState, Lease, Verdict
from support.exits import settle
from support.frontiers import A_MOMENT_S, Backend, outcome
from support.sessions import (
    ALICE,
    BOB,
    CAROL,
    JAR,
    OUT,
    SessionClient,
    another_session_client,
    identity_of,
    login,
    names_of,
    put_group,
    session_client,
    session_pages,
)

LEASE_S = 30.0


async def begin(backend: Backend) -> tuple[SessionClient, SessionClient]:
    """A crawl that uses the only account, and another crawl that waits for it."""
    client, other = session_client(backend), another_session_client(backend, crawl="other")
    await put_group(client.frontier, ALICE)
    await client.begin(*session_pages(2), lease_s=LEASE_S)
    await other.begin(*session_pages(2))
    await client.log_in(await client.lease_one())
    await client.lease_one()
    assert await other.take() == []
    return client, other


async def assert_passes_on(backend: Backend, client: SessionClient, other: SessionClient) -> None:
    """Check that after its rest, the account goes to the other crawl, still logged in."""
    await client.assert_all_free()
    assert await other.take() == [], "the site may still be at work on its request"
    await backend.advance(LOST_REST_S - 1.0)
    assert await other.take() == []
    await backend.advance(1.0 + A_MOMENT_S)
    (lease,) = await other.take()
    assert (identity_of(lease).is_in, identity_of(lease).jar) == (True, JAR)
    assert (await client.account()).state.worker == other.worker


class Visits:
    """Simulates the work of a fleet, and checks that no account is with two workers."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._holders: dict[str, str] = {}
        self._tries = Counter[bytes]()
        self.done = Counter[bytes]()

    async def work(self, client: SessionClient) -> None:
        """Work until the crawl is over. From time to time, die and come back."""
        for number in range(400):
            grant = await client.ask(2)
            for name in names_of(grant.leases):
                assert self._holders.setdefault(name, client.worker) == client.worker
            if grant.leases and number % 17 == 5:
                for name in names_of(grant.leases):
                    del self._holders[name]
                await client.frontier.release(client.crawl, client.worker)
            else:
                for lease in grant.leases:
                    await self._visit(client, lease)
            await self._backend.advance(1.0)
            if grant.state.over:
                return
        pytest.fail("the crawl does not end")

    async def _visit(self, client: SessionClient, lease: Lease) -> None:
        self._tries[lease.fingerprint] += 1
        del self._holders[names_of([lease])[0]]  # From now on another worker may get it.
        if not identity_of(lease).is_in:
            await client.log_in(lease)
        elif self._tries[lease.fingerprint] % 3 == 2:
            await client.said(lease, OUT)
        else:
            self.done[lease.fingerprint] += 1
            await client.done(lease)


class TestAccountsOfTheDead:
    async def test_when_the_worker_is_released(self, backend: Backend) -> None:
        client, other = await begin(backend)
        assert await client.frontier.release(client.crawl, client.worker) == 1
        await assert_passes_on(backend, client, other)

    async def test_when_the_lease_expires(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await backend.advance(LEASE_S + 1.0)
        await another_session_client(backend, "third", pools=()).ask()
        await assert_passes_on(backend, client, other)

    async def test_when_the_crawl_is_cancelled(self, backend: Backend) -> None:
        """Its workers learn of that a little later, so accounts rest as if they had died."""
        client, other = await begin(backend)
        await client.control(Control.CANCEL)
        await assert_passes_on(backend, client, other)

    async def test_when_its_request_was_given_up(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await client.frontier.release(client.crawl, client.worker)
        await backend.advance(LOST_REST_S + A_MOMENT_S)
        await client.said(await client.lease_one(), IdentityReport(LoginChange.CUT))
        await assert_passes_on(backend, client, other)

    async def test_when_the_crawl_is_forgotten(self, backend: Backend) -> None:
        client, other = await begin(backend)
        await client.frontier.forget(client.crawl)
        await assert_passes_on(backend, client, other)

    @pytest.mark.parametrize("is_paused", [False, True])
    async def test_though_nobody_works_on_the_crawl(
        self, backend: Backend, is_paused: bool
    ) -> None:
        client, other = await begin(backend)
        if is_paused:
            await client.control(Control.PAUSE)
        await backend.advance(LEASE_S + SWEEP_EVERY_S)
        leases = await other.take()
        await backend.advance(LOST_REST_S + A_MOMENT_S)
        leases += await other.take()
        (lease,) = leases
        assert identity_of(lease).is_in
        await client.frontier.release(client.crawl, client.worker)
        account = await client.account()
        assert (account.exit.leased, account.state.worker) == (1, other.worker), "once"

    async def test_not_if_it_is_renewed(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2), lease_s=LEASE_S)
        lease = await client.lease_one()
        for _ in range(4):
            await backend.advance(LEASE_S - 1.0)
            assert await client.renew(lease) == []
            assert await other.take() == []
        assert (await client.account()).state.worker == client.worker

    async def test_what_a_worker_says_too_late_is_not_heard(self, backend: Backend) -> None:
        """The account was taken back from the worker, while its task still is with it."""
        client, other = session_client(backend), another_session_client(backend, crawl="other")
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2), lease_s=LEASE_S)
        await other.begin(*session_pages(2))
        late = await client.lease_one()
        await backend.advance(LEASE_S + SWEEP_EVERY_S)
        assert await other.take() == []
        await backend.advance(LOST_REST_S + A_MOMENT_S)
        assert len(await other.take()) == 1
        assert await client.renew(late) == [late], "somebody else has its account"
        await client.finish(outcome(late, Verdict.RETURNED, identity=login(b"late")))
        account = await client.account()
        assert (account.exit.leased, account.jar, account.state.is_in) == (1, b"", False)
        assert account.state.worker == other.worker

    async def test_nor_does_it_count_against_the_task(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend, crawl="other")
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1), lease_s=LEASE_S)
        await other.begin(*session_pages(2))
        late = await client.lease_one()
        await backend.advance(LEASE_S + SWEEP_EVERY_S)
        assert await other.take() == []
        await client.said(late, OUT)
        await backend.advance(LOST_REST_S + A_MOMENT_S)
        assert identity_of(await client.lease_one()).expired == 0

    async def test_one_of_two_requests_is_lost(self, backend: Backend) -> None:
        client, other = session_client(backend), another_session_client(backend)
        await put_group(client.frontier, ALICE, concurrency=2)
        await client.begin(*session_pages(4), lease_s=LEASE_S)
        await client.log_in(await client.lease_one())
        await settle(backend)
        first, _ = await client.take()
        await backend.advance(LEASE_S - 1.0)
        await client.renew(first)
        await backend.advance(2.0)
        assert await other.take() == []
        await backend.advance(LOST_REST_S + A_MOMENT_S)
        assert await other.take() == [], "the worker has it still"
        await settle(backend)
        assert len(await client.take()) == 1


class TestFleetOfAccounts:
    async def test_many_workers_lose_and_double_nothing(self, backend: Backend) -> None:
        """Some sessions end, some workers die: all tasks end, and accounts have one worker each."""
        others = [another_session_client(backend, f"w{n}") for n in range(3)]
        fleet = [session_client(backend), *others]
        await put_group(backend.frontier, ALICE, BOB, CAROL)
        entries = [each for n in range(3) for each in session_pages(12, f"h{n}.example")]
        await fleet[0].begin(*entries)
        await fleet[0].control(Control.SEAL)
        visits = Visits(backend)
        await asyncio.gather(*map(visits.work, fleet))
        assert visits.done == Counter(each.fingerprint for each in entries)
        assert (await fleet[0].stats()).state is CrawlState.FINISHED
        await fleet[0].assert_all_free()
