"""The carrier contract on Redis: packed blocks in lists."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract.carrier_suite import CarrierContract, blocks_of, by_id, fetched, finish, some_block
from shoal.errors import ConfigError, StorageBusy
from shoal.frontier.broker.carrier import Carrier, shared_lane
from shoal.frontier.broker.carriers import open_carrier
from shoal.frontier.broker.carriers.redis import RedisCarrier
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.tcp_proxy import TcpProxy

LANE = shared_lane("shop", 1)


class RedisRig:
    """Carriers whose connections go by a network that can fail."""

    in_order = True
    many = 3000

    def __init__(self, server: RedisServer, network: TcpProxy) -> None:
        self.network = network
        self._server = server
        self.opened: list[Carrier] = []

    def connect(self) -> Carrier:
        self.opened.append(RedisCarrier(f"redis://127.0.0.1:{self.network.port}", held_s=2))
        return self.opened[-1]

    async def put(self, lane: str, body: bytes) -> None:
        with self._server.client() as client:
            client.rpush(f"shoal:{{{lane}}}:blocks", body)

    async def purge(self, lane: str) -> None:
        with self._server.client() as client:
            client.delete(f"shoal:{{{lane}}}:blocks")


class TestRedis(CarrierContract):
    @pytest.fixture
    async def rig(self, redis_server: RedisServer) -> AsyncIterator[RedisRig]:
        with TcpProxy(redis_server.port) as network:
            rig = RedisRig(redis_server, network)
            yield rig
            for carrier in rig.opened:
                await carrier.close()


async def test_a_cluster(redis_cluster: RedisCluster) -> None:
    carrier = open_carrier(redis_cluster.url)
    blocks = [some_block(shared_lane("shop", number)) for number in range(20)]
    await carrier.publish(blocks)
    for block in blocks:
        found = await fetched(carrier, block.lane, 1)
        assert blocks_of(found) == [block]
        await finish(carrier, found)
        await carrier.drop(block.lane)
    await carrier.close()


async def test_nothing_is_left_behind(redis_server: RedisServer) -> None:
    carrier = open_carrier(redis_server.url)
    await carrier.publish([some_block(LANE) for _ in range(1200)])
    for _ in range(4):
        await finish(carrier, await carrier.fetch(LANE, 300))
    await carrier.close()
    assert redis_server.cli("DBSIZE") == "0"


async def test_a_key_that_is_somebody_elses(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.set(f"shoal:{{{LANE}}}:blocks", "x")
    carrier = open_carrier(redis_server.url)
    with pytest.raises(ConfigError, match="is no list but a string"):
        await carrier.declare(LANE)
    await carrier.close()


async def test_blocks_survive_a_kill(tmp_path: Path) -> None:
    """Where every write goes to disk at once."""
    with RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        carrier = open_carrier(server.url)
        blocks = [some_block(LANE) for _ in range(300)]
        await carrier.publish(blocks)
        server.kill()
        with pytest.raises(StorageBusy):
            await carrier.count(LANE)
        server.start()
        assert by_id(blocks_of(await fetched(carrier, LANE, 300))) == by_id(blocks)
        await carrier.close()
