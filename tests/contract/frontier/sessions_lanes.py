"""Identities: tasks that wait for an account or for any of a group hold up no other tasks."""

from __future__ import annotations

from shoal.frontier.values import Control, CrawlState, DeadFilter, Verdict
from support.exits import RES, SECOND_HOST, give_back, laned_pages, put_pool, settle, urls_of
from support.frontiers import HOST, Backend, entry, outcome, pages
from support.sessions import (
    ALICE,
    BOB,
    CAROL,
    GROUP,
    SHOP,
    identity,
    identity_of,
    logged_in,
    names_of,
    put_group,
    session_client,
    session_pages,
)

LEASE_S = 30.0


class TestOneAccountOnly:
    async def test_a_task_may_ask_for_one(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, CAROL)
        await client.begin(*session_pages(5, session=identity(BOB)))
        leases = await client.take()
        assert names_of(leases) == [BOB]
        await client.log_in(*leases)
        await settle(backend)
        assert names_of(await client.take()) == [BOB]

    async def test_waiting_for_one_holds_up_nobody_else(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        only = session_pages(50, session=identity(ALICE), priority=9)
        await client.begin(*only)
        assert names_of(await client.take()) == [ALICE]
        await client.add(*session_pages(2), *pages(2), *session_pages(1, SECOND_HOST))
        await settle(backend)
        assert sorted(names_of(await client.take())) == [BOB, "nobody", "nobody"]
        assert (await client.lane(pool=f"@{identity(ALICE)}")).waiting == 49

    async def test_nor_for_one_that_nobody_knows(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(
            *session_pages(50, session=identity("zoe"), priority=9), *session_pages(2), *pages(2)
        )
        assert sorted(names_of(await client.take())) == [ALICE, "nobody", "nobody"]
        grant = await client.ask()
        assert grant.wait_s is not None

    async def test_one_account_is_one_whoever_asks_for_it(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(2), *session_pages(2, session=identity(ALICE)))
        seen = set[str]()
        for _ in range(40):
            (lease,) = await client.take()
            seen.add(str(lease.task.session))
            await client.said(lease, None)
            await settle(backend)
            if len(seen) == 2:
                break
        assert seen == {SHOP, identity(ALICE)}, "neither keeps the other from its turn"

    async def test_many_that_wait_for_many(self, backend: Backend) -> None:
        client = session_client(backend, slots=1000)
        names = [f"user{number}" for number in range(60)]
        await put_group(client.frontier, *names)
        await client.begin(
            *(logged_in(f"{HOST}/{n}/{m}", identity(n)) for n in names for m in range(2)),
            concurrency_per_host=1000,
        )
        found = set[str]()
        for _ in range(10):
            leases = await client.take(200)
            assert len(set(names_of(leases))) == len(leases)
            found |= set(names_of(leases))
            await client.done(*leases)
            await settle(backend)
        assert found == set(names)
        assert (await client.stats()).done == 120


class TestSessionLanes:
    async def test_are_told_by_the_name_of_the_group(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await put_pool(client.frontier, 3, RES)
        await client.begin(
            *session_pages(3), *session_pages(2, session=identity(ALICE)), *laned_pages(1, pool=RES)
        )
        lanes = await client.frontier.lanes(client.crawl, 9)
        found = [(lane.pool, lane.tier_pool, lane.waiting) for lane in lanes]
        only = f"@{identity(ALICE)}"
        assert found == [(GROUP, GROUP, 3), (only, only, 2), (RES, RES, 1)]
        assert (await client.host()).waiting == 6

    async def test_groups_are_among_the_pools(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB, concurrency=3)
        await put_pool(client.frontier, 2, RES)
        group, pool = await client.frontier.pools()
        assert (group.rules.name, group.rules.concurrency, group.exits) == (GROUP, 3, 2)
        assert (pool.rules.name, pool.exits) == (RES, 2)
        found = [exit_.id for exit_ in await client.frontier.exits(GROUP)]
        assert found == [f"@{identity(ALICE)}", f"@{identity(BOB)}"]

    async def test_chains_go_on_one_after_the_other(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        steps = [
            logged_in(f"{HOST}/0", chain="c"),
            entry(f"{HOST}/1", chain="c"),
            logged_in(f"{HOST}/2", identity(BOB), chain="c"),
        ]
        await client.begin(*steps)
        await client.control(Control.SEAL)
        done = list[str]()
        while leases := await client.take():
            (lease,) = leases
            done += urls_of(leases)
            assert (lease.identity is None) == (lease.task.session is None)
            await client.done(lease)
        assert done == [f"{HOST}/{n}" for n in range(3)]
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_suspects_go_alone_with_an_account(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1), lease_s=LEASE_S)
        for _ in range(2):
            assert len(await client.take()) == 1
            await backend.advance(LEASE_S + 1.0)
            assert await client.take() == []
            await backend.advance(6.0)
        (lease,) = await client.take()
        assert (lease.alone, names_of([lease])) == (True, [ALICE])
        await client.log_in(lease)
        await settle(backend)
        (lease,) = await client.take()
        assert (lease.alone, identity_of(lease).is_in) == (True, True)
        await client.done(lease)
        await client.assert_all_free()

    async def test_the_dead_are_tried_again_or_purged(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await client.begin(*session_pages(2))
        leases = await client.take()
        await client.finish(*(outcome(lease, Verdict.DEAD) for lease in leases))
        await client.assert_all_free()
        assert (
            await client.frontier.retry_dead(
                client.crawl, DeadFilter(fingerprints=[leases[0].fingerprint])
            )
            == 1
        )
        assert (await client.lane(pool=GROUP)).waiting == 1
        assert await client.frontier.purge_dead(client.crawl) == 1
        await settle(backend)
        (lease,) = await client.take()
        assert lease.fingerprint == leases[0].fingerprint
        await client.done(lease)
        assert (await client.stats()).dropped == 1

    async def test_what_is_given_back_unsent_frees_the_account(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE)
        await client.begin(*session_pages(1))
        (lease,) = await client.take()
        await give_back(client, [lease])
        account = await client.account()
        assert (account.exit.leased, account.exit.requests) == (0, 0)
        await settle(backend)
        assert len(await client.take()) == 1
