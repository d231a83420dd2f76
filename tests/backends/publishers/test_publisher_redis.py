"""The publisher contract on Redis, and how much may wait there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from contract.publisher_suite import PublisherContract, message, numbers, read
from shoal.errors import ConfigError, StorageBusy
from shoal.publish.port import Channel
from support.publishing import RedisRig
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.tcp_proxy import TcpProxy


@pytest.fixture(params=["redis-stream", "redis"])
async def rig(redis_server: RedisServer, request: pytest.FixtureRequest) -> AsyncIterator[RedisRig]:
    with TcpProxy(redis_server.port) as network:
        rig = RedisRig(redis_server, network, request.param)
        yield rig
        await rig.close()


class TestRedis(PublisherContract):
    pass


async def test_so_many_wait_at_most(rig: RedisRig, redis_server: RedisServer) -> None:
    scheme = rig.address_of(Channel.ITEMS).endswith("stream")
    address = f"redis{'-stream' if scheme else ''}://127.0.0.1:{redis_server.port}"
    publisher = rig.connected(f"{address}?key={rig.crawl}&max=2")
    await publisher.publish([message(1), message(2)])
    with pytest.raises(StorageBusy, match="is full: 2 messages wait"):
        await publisher.publish([message(3)])
    assert numbers(await read(rig, Channel.ITEMS, 2)) == [1, 2]
    await publisher.publish([message(3)])


async def test_a_key_of_somebody_else(rig: RedisRig, redis_server: RedisServer) -> None:
    redis_server.client().set(f"{rig.crawl}:dead", "x")
    with pytest.raises(ConfigError, match=f"'{rig.crawl}:dead' is there, and is no"):
        await rig.connect().check()


async def test_a_cluster(rig: RedisRig, redis_cluster: RedisCluster) -> None:
    publisher = rig.connected(f"{redis_cluster.url}?key=items")
    await publisher.check()
    await publisher.publish(
        [message(number, channel) for number in range(3) for channel in Channel]
    )
