"""Identities on Redis: what is this backend's alone. Keys, forms of scripts, slots of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.core.exit_policy import BUSY_WAIT_S, EXITS_SEEN, SWEEP_EVERY_S
from shoal.errors import ConfigError, StorageBusy
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.exit_forms import RECORDS
from shoal.frontier.redis.names import EXITS
from shoal.frontier.redis.prelude import EXITS_WOKEN
from shoal.frontier.redis.scripts import BY_EXITS, script
from shoal.frontier.values import Verdict
from support.exits import RES, exits_of, put_pool
from support.frontiers import CRAWL, HOST, open_rules, pages
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.sessions import (
    ALICE,
    BOB,
    GROUP,
    OUT,
    SHOP,
    SessionClient,
    another_session_client,
    failure,
    identity,
    identity_of,
    logged_in,
    names_of,
    put_group,
    session_client,
    session_pages,
)

KNOWN = (GROUP, RES)
LEASE_S = 30.0


@pytest.fixture
async def frontier(redis_server: RedisServer) -> AsyncIterator[RedisFrontier]:
    redis_server.flush()
    opened = RedisFrontier(redis_server.url)
    yield opened
    await opened.close()


@pytest.fixture
async def on_cluster(redis_cluster: RedisCluster) -> AsyncIterator[RedisFrontier]:
    redis_cluster.flush()
    opened = RedisFrontier(redis_cluster.url)
    yield opened
    await opened.close()


def keys_of(server: RedisServer) -> set[str]:
    with server.client() as raw:
        return {key.decode() for key in raw.scan_iter(count=10_000)}


class TestScripts:
    def test_those_of_crawls_without_lanes_know_nothing_of_accounts(self) -> None:
        for name in BY_EXITS:
            assert "identity_policy" not in script(name).text
            assert "identity_policy" in script(name, by_exits=True).text

    def test_records_are_only_ever_extended(self) -> None:
        """Servers have them in this order."""
        assert list(RECORDS["account"])[:12] == [
            *("is_in", "worker", "failures", "is_banned", "why", "through", "through_session"),
            *("user_agent", "login_url", "logins", "expired", "login_at"),
        ]

    async def test_a_crawl_without_sessions_runs_none_of_the_others(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        """Also for a worker that knows accounts."""
        client = SessionClient(frontier, pools=KNOWN)
        await put_group(frontier, ALICE)
        await client.start(*pages(20))
        before = keys_of(redis_server)
        assert await client.work_off() == 20
        assert not (await frontier._crawl(CRAWL)).home._by_exits
        assert {key for key in keys_of(redis_server) - before if key.startswith(EXITS)} == set()


class TestKeys:
    async def test_a_crawl_that_is_forgotten_leaves_nothing_but_accounts(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        client = SessionClient(frontier, pools=KNOWN)
        await put_pool(frontier, 2, RES)
        await put_group(frontier, ALICE, BOB, through=RES)
        before = keys_of(redis_server)
        await client.begin(
            *session_pages(9),
            *session_pages(3, session=identity(BOB)),
            *(logged_in(f"{HOST}/c{number}", chain="chain") for number in range(3)),
        )
        leases = await client.take()
        assert sorted(names_of(leases)) == [ALICE, BOB]
        await client.log_in(leases[0])
        await client.said(leases[1], OUT)
        await client.take()
        await frontier.forget(CRAWL)
        left = {key for key in keys_of(redis_server) if not key.startswith(EXITS)}
        left = {key for key in left if not key.endswith((":forgotten", ":restarts"))}
        assert left <= before
        await client.assert_all_free(GROUP, RES)

    @pytest.mark.parametrize("verdict", [Verdict.DONE, Verdict.DEAD, Verdict.DROPPED])
    async def test_of_a_task_that_has_ended_no_expired_login_is_kept(
        self, frontier: RedisFrontier, redis_server: RedisServer, verdict: Verdict
    ) -> None:
        client = SessionClient(frontier, pools=KNOWN)
        await put_group(frontier, ALICE)
        await client.begin(*session_pages(1))
        await client.said((await client.take())[0], OUT)
        assert any(key.endswith(":expired") for key in keys_of(redis_server))
        (lease,) = await client.take()
        assert identity_of(lease).expired == 1
        await client.said(lease, None, verdict)
        assert not any(key.endswith(":expired") for key in keys_of(redis_server))

    async def test_cookies_are_in_one_place_only(
        self, frontier: RedisFrontier, redis_server: RedisServer
    ) -> None:
        secret = b"\xc1\x00 not even text"
        client = SessionClient(frontier, pools=KNOWN)
        await put_group(frontier, ALICE)
        await client.begin(*session_pages(2))
        await client.log_in((await client.take())[0], jar=secret)
        with redis_server.client() as raw:
            found = [key for key in raw.scan_iter() if secret in (raw.dump(key) or b"")]
        assert found == [f"{EXITS}jars".encode()]
        assert identity_of((await client.take())[0]).jar == secret


class TestLeftBehind:
    async def test_an_account_among_many_leases_that_nobody_takes_back(
        self, on_redis: RedisBackend
    ) -> None:
        client, other = session_client(on_redis), another_session_client(on_redis, crawl="other")
        await put_group(client.frontier, ALICE)
        await client.begin(*pages(EXITS_WOKEN + 20), lease_s=LEASE_S, concurrency_per_host=1000)
        assert len(await client.take(1000)) > EXITS_WOKEN
        await on_redis.advance(1.0)
        await client.add(*session_pages(1))
        assert names_of(await client.take()) == [ALICE]
        await other.begin(*session_pages(1))
        for _ in range(30):
            await on_redis.advance(SWEEP_EVERY_S)
            if leases := await other.take():
                break
        assert names_of(leases) == [ALICE]


class TestLostAnswers:
    async def test_accounts_and_their_exits_are_given_back(
        self, on_redis: RedisBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = session_client(on_redis)
        await put_pool(client.frontier, 3, RES)
        await put_group(client.frontier, ALICE, BOB, through=RES)
        await client.begin(*session_pages(5))
        assert isinstance(client.frontier, RedisFrontier)
        shard = (await client.frontier._crawl(CRAWL)).home
        run = shard._run_lease

        async def deaf(*args: object) -> None:
            await run(*args)  # type: ignore[arg-type]
            raise StorageBusy("no answer")

        with monkeypatch.context() as patch:
            patch.setattr(shard, "_run_lease", deaf)
            with pytest.raises(StorageBusy):
                await client.ask(9)
        assert (await client.account()).exit.leased == 1
        assert sorted(names_of(await client.take())) == [ALICE, BOB]
        assert [e.leased for e in await client.frontier.exits(GROUP)] == [1, 1]
        assert sum(e.leased for e in await client.frontier.exits(RES)) == 2


class TestManyAccounts:
    async def test_more_than_are_looked_at(self, on_redis: RedisBackend) -> None:
        client = session_client(on_redis, slots=1000)
        other = another_session_client(on_redis)
        names = [f"user{number}" for number in range(EXITS_SEEN + 50)]
        await put_group(client.frontier, *names)
        await client.begin(*session_pages(len(names) + 1), concurrency_per_host=1000)
        leases = await client.take(1000)
        assert sorted(names_of(leases)) == sorted(names)
        grant = await other.ask()
        assert grant.leases == []
        assert grant.wait_s == pytest.approx(BUSY_WAIT_S)
        await client.failed(*leases)
        for _ in range(2):
            assert await other.take() == []
        failed = await client.frontier.accounts(SHOP)
        assert {account.state.failures for account in failed} == {1}
        assert (await client.stats()).dead == 0

    async def test_all_of_them_banned(self, on_redis: RedisBackend) -> None:
        client = session_client(on_redis)
        names = [f"user{number}" for number in range(EXITS_SEEN + 50)]
        await put_group(client.frontier, *names)
        frontier = client.frontier
        for name in names:
            for _ in range(4):
                await client.told_by_hand(failure(), name)
        await client.begin(*session_pages(2))
        assert await client.take() == []
        dead = await frontier.dead(CRAWL, 9)
        wanted = "no account of session shop can be used: 250 accounts, 250 banned"
        assert {record.reason for record in dead} == {wanted}


class TestCluster:
    async def test_a_crawl_that_is_spread_gets_no_sessions(self, on_cluster: RedisFrontier) -> None:
        await on_cluster.start(CRAWL, open_rules())
        with pytest.raises(ConfigError, match="spread over a cluster"):
            await on_cluster.start(CRAWL, open_rules(sessions=(SHOP,)))
        await on_cluster.forget(CRAWL)
        started = await on_cluster.start(CRAWL, open_rules(sessions=(SHOP,)))
        assert started.rules.sessions == (SHOP,)

    async def test_one_without_pools_has_accounts_and_their_exits(
        self, on_cluster: RedisFrontier
    ) -> None:
        client = SessionClient(on_cluster, pools=KNOWN)
        await put_pool(on_cluster, 1, RES)
        await put_group(on_cluster, ALICE, through=RES)
        await client.begin(*session_pages(2), pools=())
        (lease,) = await client.take()
        assert (names_of([lease]), len(exits_of([lease]))) == ([ALICE], 1)
        assert await on_cluster.turn(CRAWL, HOST, lease.lent) == 0.0
        await client.log_in(lease)
        assert identity_of((await client.take())[0]).is_in
