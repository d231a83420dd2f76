"""How shares of a host's room are kept on Redis, and that who has none does not pay for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest
import redis

from shoal.core.sharing import AHEAD_PER_SHARE, SHARE_WAIT_S, TURN_S, WANT_S
from shoal.drivers.redis.link import RedisLink
from shoal.errors import StorageBusy
from shoal.frontier.redis.names import shard_of
from shoal.frontier.values import Ask, Control, Grant, Holding, Lease, Verdict
from support.frontiers import CRAWL, HOST, Client, checked, open_rules, outcome, pages
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer

ROOM = 4


@pytest.fixture
def raw(redis_server: RedisServer) -> redis.Redis:
    return redis_server.client()


async def ask(client: Client, limit: int, **holdings: tuple[int, int]) -> Grant:
    """Ask for work, with what the client has of hosts: `a` is a.example."""
    named = {f"{name}.example": Holding(*holding) for name, holding in holdings.items()}
    return await client.frontier.lease(CRAWL, Ask(client.worker, limit, named))


def stored(raw: redis.Redis, name: str) -> dict[bytes, bytes]:
    """A hash of the crawl, by how its key ends."""
    keys: list[bytes] = list(raw.scan_iter(match=f"*:{name}"))
    return cast(dict[bytes, bytes], raw.hgetall(keys[0])) if keys else {}


def shares(raw: redis.Redis) -> dict[bytes, tuple[int, dict[str, int]]]:
    """By host: how many shared leases are not finished, and the shares of workers."""
    found = {}
    for host, packed in stored(raw, "shares").items():
        count, *parts = msgspec.msgpack.decode(packed)
        found[host] = (count, dict(zip(parts[::3], parts[1::3], strict=True)))
    return found


class TestDividing:
    async def test_who_is_alone_has_all(self, on_redis: RedisBackend) -> None:
        client = on_redis.client()
        await client.start(*pages(100), concurrency_per_host=ROOM)
        grant = await ask(client, 50)
        assert len(grant.leases) == ROOM * AHEAD_PER_SHARE
        assert all(lease.shared and not lease.crowded for lease in grant.leases)
        assert grant.shares == {HOST: ROOM}

    async def test_who_comes_has_half_when_the_other_has_made_room(
        self, on_redis: RedisBackend
    ) -> None:
        client, other = on_redis.client("a"), on_redis.another("b")
        await client.start(*pages(100), concurrency_per_host=ROOM)
        await ask(client, 50)
        late = await ask(other, 50)
        assert not late.leases
        assert late.wait_s == pytest.approx(SHARE_WAIT_S)
        lowered = await ask(client, 50, a=(3, 20))
        assert (lowered.leases, lowered.shares) == ([], {HOST: ROOM // 2})
        assert (await ask(other, 50)).shares == {HOST: 1}, "three are still in flight"
        await ask(client, 50, a=(2, 20))
        assert (await ask(other, 50, a=(1, 7))).shares == {HOST: ROOM // 2}

    async def test_who_is_gone_counts_until_its_lease_is_over(self, on_redis: RedisBackend) -> None:
        client, other = on_redis.client("a"), on_redis.another("b")
        await client.start(*pages(100), concurrency_per_host=ROOM, lease_s=30.0)
        leases = (await ask(client, 50)).leases
        await on_redis.advance(20.0)
        await client.renew(leases[0])
        await on_redis.advance(29.0)
        assert (await ask(other, 50)).leases == []
        await on_redis.advance(2.0)
        assert (await ask(other, 50)).shares == {HOST: ROOM}

    async def test_room_for_one_goes_round(self, on_redis: RedisBackend) -> None:
        clients = [on_redis.another(name) for name in "abc"]
        await clients[0].start(*pages(100), concurrency_per_host=1)
        turns = []
        for _ in range(6):
            told = {}
            for client in clients * 2:
                grant = await ask(client, 5, a=(0, 0))
                told[client.worker] = grant.shares[HOST]
                await client.finish(*(outcome(at, Verdict.RETURNED) for at in grant.leases))
            assert sum(told.values()) <= 1
            turns += [worker for worker, share in told.items() if share]
            await on_redis.advance(min(TURN_S, WANT_S / 2))
        assert set(turns) == set("abc")

    async def test_nobody_may_send_to_a_paused_crawl(self, on_redis: RedisBackend) -> None:
        client = on_redis.client()
        await client.start(*pages(100), concurrency_per_host=ROOM)
        await ask(client, 50)
        await client.control(Control.PAUSE)
        assert (await ask(client, 50, a=(2, 9), b=(0, 0))).shares == {HOST: 0, "b.example": 0}

    async def test_a_host_with_a_rate_is_not_shared(self, on_redis: RedisBackend) -> None:
        client = on_redis.client()
        await client.start(*pages(100), concurrency_per_host=ROOM)
        (first, *_) = (await ask(client, 50)).leases
        await client.frontier.start(CRAWL, open_rules(rate="1/s", lease_s=30.0))
        assert (await ask(client, 50, a=(ROOM, 9))).shares == {HOST: 0}
        await client.end(first)
        await on_redis.advance(31.0)
        (paced,) = (await ask(client, 50)).leases
        assert (paced.paced, paced.shared) == (True, False)


class TestKept:
    async def test_until_nobody_has_any(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start(*pages(6), concurrency_per_host=ROOM)
        grant = await ask(client, 50)
        assert shares(raw) == {HOST.encode(): (6, {"worker": ROOM})}
        await client.finish(*map(outcome, grant.leases[:5]))
        await ask(client, 50, a=(1, 0))
        assert shares(raw) == {HOST.encode(): (1, {"worker": 1})}
        await ask(client, 50, a=(0, 0))
        assert shares(raw) == {HOST.encode(): (1, {})}
        await client.end(grant.leases[5])
        assert stored(raw, "shares") == {}

    async def test_forgotten_with_the_crawl(self, on_redis: RedisBackend, raw: redis.Redis) -> None:
        client = on_redis.client()
        await client.start(*pages(100), concurrency_per_host=ROOM)
        await ask(client, 50)
        await client.frontier.forget(CRAWL)
        assert stored(raw, "shares") == {}

    async def test_a_host_of_another_crawl_is_not_made(self, on_redis: RedisBackend) -> None:
        client = on_redis.client()
        await client.start(*pages(1))
        assert (await ask(client, 0, zzz=(1, 2))).shares == {"zzz.example": 0}
        assert [host.host for host in await client.frontier.hosts(CRAWL, 9)] == [HOST]

    async def test_after_a_restart_all_are_good_for_a_lease_time(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client, other = on_redis.client("a"), on_redis.another("b")
        await client.start(*pages(100), concurrency_per_host=ROOM, lease_s=30.0)
        await ask(client, 50)
        await on_redis.advance(40.0)
        raw.script_flush()
        assert (await ask(other, 50)).leases == []

    async def test_the_held_leases_of_an_earlier_version_are_plain(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(20), concurrency_per_host=ROOM)
        plain = await client.lease(ROOM)
        assert not any(lease.shared for lease in plain)
        held = stored(raw, "held")
        assert [packed[0] for packed in held.values()] == [0x96] * ROOM, "lists of six values"
        assert (await ask(client, 9)).leases == []
        await client.finish(*map(outcome, plain[:3]))
        assert (await ask(client, 9)).shares == {HOST: 3}
        assert await client.renew(plain[3]) == []
        await client.end(plain[3])
        assert (await ask(client, 9, a=(3, 0))).shares == {HOST: ROOM}


class TestCommands:
    """What steps ask the server for, by its own count."""

    @staticmethod
    def count(raw: redis.Redis) -> dict[str, int]:
        stats = raw.info("commandstats")
        return {name.removeprefix("cmdstat_"): told["calls"] for name, told in stats.items()}

    async def test_a_lease_without_shares_asks_once_whether_there_are_any(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*(at for n in range(9) for at in pages(9, f"{n}.example")))
        await client.lease(1)
        raw.config_resetstat()
        leases = await client.lease(50)
        assert len(leases) == 50
        count = self.count(raw)
        assert count["exists"] == 1
        # The crawl, the hosts; the tasks that are held, and their moments; and what is the same
        # for all steps.
        assert (count["hmget"], count["hset"], count.get("hdel", 0)) == (2, 4, 0)

    async def test_a_finish_without_shares_does_not_ask(
        self, on_redis: RedisBackend, raw: redis.Redis
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(9), *pages(9, "b.example"))
        leases = await client.lease(6)
        raw.config_resetstat()
        await client.finish(*map(outcome, leases))
        assert "exists" not in self.count(raw)


class TestLostAnswers:
    async def test_the_leases_come_back_and_the_share_stays(
        self, on_redis: RedisBackend, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = on_redis.client()
        await client.start(*pages(100), concurrency_per_host=ROOM)
        run_known = RedisLink.run_known

        async def deaf(*args: Any) -> Any:
            await run_known(*args)
            raise StorageBusy("no answer")

        with monkeypatch.context() as patch:
            patch.setattr(RedisLink, "run_known", deaf)
            with pytest.raises(StorageBusy):
                await ask(client, 9)
        assert shares(raw) == {HOST.encode(): (9, {"worker": ROOM})}
        await client.control(Control.PAUSE)
        assert (await ask(client, 9)).leases == []
        assert shares(raw) == {HOST.encode(): (0, {"worker": ROOM})}
        await client.control(Control.RESUME)
        grant = await ask(client, 9)
        assert [lease.task.url.rpartition("/")[2] for lease in grant.leases] == [*"012345678"]
        assert grant.shares == {HOST: ROOM}


class TestCluster:
    @pytest.fixture
    async def on_cluster(self, redis_cluster: RedisCluster) -> AsyncIterator[RedisBackend]:
        async with checked(RedisBackend(redis_cluster.url)) as backend:
            yield cast(RedisBackend, backend)

    async def test_each_shard_is_told_of_its_hosts(
        self, on_cluster: RedisBackend, redis_cluster: RedisCluster
    ) -> None:
        sites = _sites_of_all_shards(len(redis_cluster.servers))
        client = on_cluster.client()
        await client.start(
            *(at for site in sites for at in pages(100, site)), concurrency_per_host=ROOM
        )
        leases = list[Lease]()
        holdings: dict[str, Holding] = {}
        for _ in range(len(sites)):  # The turns of shards go round.
            grant = await client.frontier.lease(CRAWL, Ask(client.worker, 60, holdings))
            leases += grant.leases
            unsent = [lease.task.site for lease in leases]
            holdings = {site: Holding(0, unsent.count(site)) for site in grant.shares}
        assert grant.shares == dict.fromkeys(sites, ROOM)
        assert all(unsent.count(site) <= ROOM * AHEAD_PER_SHARE for site in sites)
        # Where there is no room to be filled, all are told as well.
        for limit in (0, 1):
            again = Ask(client.worker, limit, dict.fromkeys(sites, Holding(1, 1)))
            assert (await client.frontier.lease(CRAWL, again)).shares == dict.fromkeys(sites, ROOM)


def _sites_of_all_shards(shards: int) -> list[str]:
    found: dict[int, str] = {}
    for number in range(1000):
        found.setdefault(shard_of(f"{number}.example", shards), f"{number}.example")
    return list(found.values())
