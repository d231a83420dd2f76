"""Keys on Redis: spread over a cluster, under odd names, and gone when a crawl is forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.core.cookies import Cookie, Jar
from shoal.core.records import Robots
from shoal.errors import StorageFailed, UnknownCrawl
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.names import shard_of, tags
from shoal.frontier.values import Ask, Entry, TaskState, Verdict
from support.frontiers import CRAWL, Client, entry, open_rules, outcome, pages, pulse
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer

NAMES = [
    *(
        "a b",
        "a:b",
        "{a}",
        "a{b}c",
        "}{",
        "%7Ba%7D",
        "a%",
        "crawls",
        "lock",
        "exits",
        "überall/🐟",
        "x:inbox",
    ),
    *("*", "a\nb", "'\"\\"),
]
BOOKKEEPING = (b":forgotten", b":restarts")


class Servers:
    """One server, or the masters of a cluster."""

    def __init__(self, url: str, *servers: RedisServer) -> None:
        self.url = url
        self.clients = [server.client() for server in servers]

    def keys_of_each(self) -> list[list[bytes]]:
        return [list(client.scan_iter(count=10_000)) for client in self.clients]

    def all_keys(self) -> list[bytes]:
        return [key for keys in self.keys_of_each() for key in keys]

    def flush(self) -> None:
        for client in self.clients:
            client.flushall()


@pytest.fixture
def cluster(redis_cluster: RedisCluster) -> Servers:
    return Servers(redis_cluster.url, *redis_cluster.servers)


@pytest.fixture(params=["single", "cluster"])
def servers(request: pytest.FixtureRequest, redis_server: RedisServer) -> Servers:
    if request.param == "cluster":
        chosen: Servers = request.getfixturevalue("cluster")
    else:
        chosen = Servers(redis_server.url, redis_server)
    chosen.flush()
    return chosen


@pytest.fixture
async def client(servers: Servers) -> AsyncIterator[Client]:
    frontier = RedisFrontier(servers.url)
    yield Client(frontier, "worker", CRAWL)
    await frontier.close()


def spread(hosts: int, priorities: int = 1) -> list[Entry]:
    return [
        entry(f"h{number}.example/{priority}", priority=priority)
        for number in range(hosts)
        for priority in range(priorities)
    ]


class TestNames:
    async def test_odd_ones_are_kept_apart(self, client: Client) -> None:
        frontier = client.frontier
        for number, name in enumerate(NAMES):
            await frontier.start(name, open_rules())
            await frontier.add(name, pages(number + 1, host="a.example"))
        assert {stats.crawl for stats in await frontier.crawls()} == set(NAMES)
        for number, name in enumerate(NAMES):
            (lease,) = (await frontier.lease(name, Ask("worker", 1))).leases
            assert await frontier.finish(name, [outcome(lease, follow_ups=spread(3))]) == []
            stats = await frontier.stats(name)
            assert (stats.added, stats.done) == (number + 4, 1)

    async def test_one_is_forgotten_and_the_others_stay(self, client: Client) -> None:
        frontier = client.frontier
        for name in NAMES:
            await frontier.start(name, open_rules())
        for number, name in enumerate(NAMES):
            await frontier.forget(name)
            left = {stats.crawl for stats in await frontier.crawls()}
            assert left == set(NAMES[number + 1 :])


class TestForget:
    async def fill(self, client: Client, **rules: str) -> None:
        """A crawl that has something of everything."""
        chained = [entry(f"c.example/{n}", chain=f"{{{n // 2}}}") for n in range(1200)]
        await client.start(*spread(1200, 3), *chained, **rules)
        leases = await client.lease(50)
        robots = Robots(text="", ttl_s=60.0)
        ends = [
            outcome(leases[0], robots=robots, latency_s=0.5, follow_ups=spread(9, 5)),
            outcome(leases[1], Verdict.RETRY, fault=True, retry_in_s=600.0),
            outcome(leases[2], Verdict.DEAD, reason="bad"),
            outcome(leases[3], Verdict.DROPPED, reason="unwanted"),
            outcome(leases[4], Verdict.RETURNED, sent=False),
        ]
        await client.finish(*ends)
        await client.frontier.beat(CRAWL, pulse())
        for _ in range(2):
            await client.frontier.release(CRAWL, client.worker)
            await client.lease(50)
        await client.frontier.release(CRAWL, client.worker)
        await client.lease(50)

    @pytest.mark.parametrize("seen", ["exact", "bloom"])
    @pytest.mark.parametrize("span", [{}, {"seen_for": "1d"}])
    async def test_nothing_is_left(
        self, client: Client, servers: Servers, seen: str, span: dict[str, str]
    ) -> None:
        await self.fill(client, seen=seen, **span)
        assert len(servers.all_keys()) > 2 * 1200
        await client.frontier.forget(CRAWL)
        assert [key for key in servers.all_keys() if not key.endswith(BOOKKEEPING)] == []
        with pytest.raises(UnknownCrawl):
            await client.stats()
        await client.frontier.forget(CRAWL)
        assert await client.frontier.crawls() == []

    async def test_cookies_are_not_left_either(self, client: Client, servers: Servers) -> None:
        await client.start(*(entry(f"c.example/{n}", chain="c") for n in range(3)), cookies="visit")
        jar = Jar((Cookie(name="sid", value="secret", domain="c.example"),))
        await client.end(await client.lease_one(), cookies=jar)
        assert any(key.endswith(b":jars") for key in servers.all_keys())
        await client.frontier.forget(CRAWL)
        assert [key for key in servers.all_keys() if not key.endswith(BOOKKEEPING)] == []

    async def test_another_crawl_is_untouched(self, client: Client, servers: Servers) -> None:
        other = Client(client.frontier, "worker", "other")
        await other.start(*spread(20))
        before = sorted(servers.all_keys())
        await self.fill(client)
        await client.frontier.forget(CRAWL)
        left = [key for key in servers.all_keys() if CRAWL.encode() + b"}" not in key]
        assert sorted(key for key in left if not key.endswith(BOOKKEEPING)) == before
        assert await other.work_off() == 20

    async def test_one_that_is_interrupted_is_ended_by_the_next_start(
        self, client: Client, servers: Servers
    ) -> None:
        await self.fill(client)
        frontier = client.frontier
        assert isinstance(frontier, RedisFrontier)
        for shard in (await frontier._crawl(CRAWL)).shards:
            await shard.run("forget")
        assert len(servers.all_keys()) > 1200
        await client.start(*spread(2))
        assert len(servers.all_keys()) < 100
        await frontier.forget(CRAWL)
        assert [key for key in servers.all_keys() if not key.endswith(BOOKKEEPING)] == []


class TestCluster:
    @pytest.fixture
    async def opened(self, cluster: Servers) -> AsyncIterator[list[RedisFrontier]]:
        cluster.flush()
        frontiers: list[RedisFrontier] = []
        yield frontiers
        for frontier in frontiers:
            await frontier.close()

    def client_of(self, cluster: Servers, opened: list[RedisFrontier], options: str = "") -> Client:
        opened.append(RedisFrontier(cluster.url + options))
        return Client(opened[-1], "worker", CRAWL)

    async def test_a_crawl_is_on_all_masters(
        self, cluster: Servers, opened: list[RedisFrontier]
    ) -> None:
        client = self.client_of(cluster, opened)
        await client.start(*spread(300))
        queues = [sum(b":q:" in key for key in keys) for keys in cluster.keys_of_each()]
        assert sum(queues) == 300
        assert min(queues) >= 70

    @pytest.mark.parametrize("shards", [1, 2, 7])
    async def test_the_number_of_shards_is_that_of_the_first_client(
        self, cluster: Servers, opened: list[RedisFrontier], shards: int
    ) -> None:
        await self.client_of(cluster, opened, f"?shards={shards}").start(*spread(40))
        for options in ("", "?shards=4"):
            client = self.client_of(cluster, opened, options)
            assert (await client.start()).added == 40
            assert (await client.add(*spread(40))).duplicates == 40
            assert await client.state(spread(40)[7]) is TaskState.WAITING
        hashes = [key for key in cluster.all_keys() if key.endswith(b":crawl")]
        assert len(hashes) == shards
        assert await client.work_off() == 40

    async def test_started_over_with_other_shards(
        self, cluster: Servers, opened: list[RedisFrontier]
    ) -> None:
        """Also seen by a client that knew the old ones."""
        old = self.client_of(cluster, opened, "?shards=2")
        await old.start(*spread(10))
        await old.lease_one()
        new = self.client_of(cluster, opened, "?shards=5")
        await new.frontier.forget(CRAWL)
        with pytest.raises(UnknownCrawl):
            await old.ask()
        await new.start(*spread(20))
        assert await old.work_off() == 20

    async def test_one_master_is_emptied(
        self, cluster: Servers, opened: list[RedisFrontier]
    ) -> None:
        client = self.client_of(cluster, opened)
        await client.start(*spread(30))
        await client.lease(3)
        cluster.clients[1].flushall()
        with pytest.raises(StorageFailed, match=f"lost crawl '{CRAWL}'"):
            await client.ask(30)

    def test_hosts_stay_where_they_are(self) -> None:
        """A version that spreads them otherwise would not find what this one has queued."""
        assert [shard_of(f"h{number}.example", 3) for number in range(8)] == [
            0,
            1,
            0,
            1,
            0,
            0,
            1,
            2,
        ]
        assert tags(CRAWL, 3) == ["crawl/1of3/3", "crawl/2of3/1", "crawl/3of3/0"]
