"""Identities: logins, their cookies, and the end of sessions."""

from __future__ import annotations

from shoal.core.identities import IdentityReport
from shoal.frontier.values import Verdict
from support.exits import settle
from support.frontiers import Backend, outcome
from support.sessions import (
    ALICE,
    BOB,
    JAR,
    OUT,
    SHOP,
    SessionClient,
    identity_of,
    login,
    put_group,
    session_client,
    session_pages,
)


async def begin(backend: Backend, *accounts: str, count: int = 9) -> SessionClient:
    client = session_client(backend)
    await put_group(client.frontier, *(accounts or (ALICE,)))
    await client.begin(*session_pages(count))
    return client


class TestJars:
    async def test_are_changed_by_a_page(self, backend: Backend) -> None:
        client = await begin(backend)
        await client.log_in(await client.lease_one())
        await client.done(await client.lease_one(), jar=b"newer")
        lease = await client.lease_one()
        assert (identity_of(lease).jar, identity_of(lease).is_in) == (b"newer", True)

    async def test_stay_if_nothing_is_said(self, backend: Backend) -> None:
        client = await begin(backend)
        await client.log_in(await client.lease_one())
        await client.said(await client.lease_one(), IdentityReport())
        await client.said(await client.lease_one(), None)
        await client.said(await client.lease_one(), OUT)
        await client.log_in(await client.lease_one(), jar=None)
        lease = await client.lease_one()
        assert (identity_of(lease).jar, identity_of(lease).is_in) == (JAR, True)

    async def test_can_be_emptied(self, backend: Backend) -> None:
        client = await begin(backend)
        await client.log_in(await client.lease_one())
        await client.done(await client.lease_one(), jar=b"")
        assert identity_of(await client.lease_one()).jar == b""

    async def test_are_bytes(self, backend: Backend) -> None:
        """Jars are arbitrary bytes, as they may be encrypted."""
        client = await begin(backend)
        jar = bytes(range(256)) * 40
        await client.log_in(await client.lease_one(), jar=jar)
        assert identity_of(await client.lease_one()).jar == jar
        assert (await client.account()).jar == jar

    async def test_each_account_has_its_own(self, backend: Backend) -> None:
        client = await begin(backend, ALICE, BOB)
        for lease in await client.take():
            await client.log_in(lease, jar=identity_of(lease).name.encode())
        await settle(backend)
        for lease in await client.take():
            assert identity_of(lease).jar == identity_of(lease).name.encode()

    async def test_a_stale_token_changes_nothing(self, backend: Backend) -> None:
        client = await begin(backend)
        await client.log_in(await client.lease_one())
        stale = await client.lease_one()
        await client.frontier.release(client.crawl, client.worker)
        before = await client.frontier.accounts(SHOP, jars=True)
        for report in (IdentityReport(jar=b"stale"), login(b"stale"), OUT):
            ends = outcome(stale, Verdict.RETURNED, identity=report)
            assert await client.finish(ends) == [stale]
        assert await client.frontier.accounts(SHOP, jars=True) == before

    async def test_a_lease_ends_once(self, backend: Backend) -> None:
        client = await begin(backend)
        lease = await client.lease_one()
        first = outcome(lease, Verdict.RETURNED, identity=login(b"first"))
        second = outcome(lease, Verdict.RETURNED, identity=login(b"second"))
        assert await client.finish(first, second) == [lease]
        account = await client.account()
        assert (account.jar, account.state.logins, account.exit.requests) == (b"first", 1, 1)

    async def test_outlive_their_crawl_and_their_listing(self, backend: Backend) -> None:
        client = await begin(backend)
        await client.log_in(await client.lease_one())
        await client.frontier.forget(client.crawl)
        await put_group(client.frontier)
        assert await client.frontier.accounts(SHOP) == []
        await put_group(client.frontier, ALICE)
        account = await client.account()
        assert (account.jar, account.state.is_in) == (JAR, True)


class TestSessionsThatEnd:
    async def test_the_account_logs_in_again(self, backend: Backend) -> None:
        client = await begin(backend)
        await client.log_in(await client.lease_one())
        await client.said(await client.lease_one(), OUT)
        lease = await client.lease_one()
        assert (identity_of(lease).is_in, identity_of(lease).jar) == (False, JAR)
        await client.log_in(lease)
        assert identity_of(await client.lease_one()).is_in
        state = (await client.account()).state
        assert (state.logins, state.expired) == (2, 1)

    async def test_the_task_knows_how_often_it_met_that(self, backend: Backend) -> None:
        client = await begin(backend, count=1)
        for number in range(3):
            lease = await client.lease_one()
            assert identity_of(lease).expired == number
            await client.log_in(lease)
            lease = await client.lease_one()
            assert (identity_of(lease).expired, lease.task.retry_count) == (number, 0)
            await client.said(lease, OUT)

    async def test_what_was_merely_given_back_does_not_count(self, backend: Backend) -> None:
        client = await begin(backend, count=1)
        await client.log_in(await client.lease_one())
        for report in (None, IdentityReport(), IdentityReport(jar=b"another")):
            await client.said(await client.lease_one(), report)
        assert identity_of(await client.lease_one()).expired == 0

    async def test_is_known_after_a_loss_and_a_retry(self, backend: Backend) -> None:
        client = await begin(backend, count=1)
        await client.log_in(await client.lease_one())
        await client.said(await client.lease_one(), OUT)
        await client.lease_one()
        await client.frontier.release(client.crawl, client.worker)
        await backend.advance(6.0)
        lease = await client.lease_one()
        assert identity_of(lease).expired == 1
        await client.said(lease, None, Verdict.RETRY)
        await settle(backend)
        lease = await client.lease_one()
        assert (identity_of(lease).expired, lease.task.retry_count) == (1, 1)

    async def test_is_forgotten_when_the_task_has_ended(self, backend: Backend) -> None:
        client = await begin(backend, count=1)
        await client.log_in(await client.lease_one())
        await client.said(await client.lease_one(), OUT)
        await client.said(await client.lease_one(), OUT, Verdict.DEAD)
        assert await client.frontier.retry_dead(client.crawl) == 1
        await settle(backend)
        assert identity_of(await client.lease_one()).expired == 0

    async def test_another_task_knows_nothing_of_it(self, backend: Backend) -> None:
        client = await begin(backend, ALICE, BOB, count=2)
        await client.log_all_in(backend, 2)
        first, second = await client.take()
        await client.said(first, OUT)
        await client.said(second, None)
        await settle(backend)
        counts = {at.fingerprint: identity_of(at).expired for at in await client.take()}
        assert counts == {first.fingerprint: 1, second.fingerprint: 0}

    async def test_several_that_find_it_out_are_one_end(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, concurrency=3)
        await client.begin(*session_pages(3))
        await client.log_all_in(backend, 1)
        leases = await client.take()
        assert len(leases) == 3
        await client.said(leases[0], OUT)
        await settle(backend)
        assert await client.take() == [], "it is to log in, with nothing else in flight"
        for lease in leases[1:]:
            await client.said(lease, OUT)
        await settle(backend)
        assert len(await client.take()) == 1
        assert (await client.account()).state.expired == 1
