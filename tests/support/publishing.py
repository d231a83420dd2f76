"""Brokers to publish to, one class per kind, with the interface that the contract suite needs."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

from shoal.drivers.amqp.link import AmqpLink, amqp_address
from shoal.drivers.sqs import SqsLink, sqs_address
from shoal.feeds import open_source
from shoal.feeds.formats import Wire
from shoal.publish import open_publisher
from shoal.publish import redis as on_redis
from shoal.publish.port import Channel, Publisher
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer
from support.tcp_proxy import TcpProxy

_numbers = itertools.count()


class Connecting:
    """Opens publishers, and closes them at the end."""

    def __init__(self, network: TcpProxy) -> None:
        self.network = network
        self.crawl = f"shop{next(_numbers)}"
        self.opened: list[Publisher] = []

    def connected(self, address: str) -> Publisher:
        self.opened.append(open_publisher(address, self.crawl))
        return self.opened[-1]

    async def close(self) -> None:
        for publisher in self.opened:
            await publisher.close()


class RabbitRig(Connecting):
    most_bytes = 16 * 2**20

    def __init__(self, server: RabbitServer, network: TcpProxy) -> None:
        super().__init__(network)
        self._url = server.url.removesuffix("/%2F")
        self._port = server.port

    def connect(self) -> Publisher:
        return self.connected(self._url.replace(f":{self._port}", f":{self.network.port}"))

    def address_of(self, channel: Channel) -> str:
        return f"{self._url}/shoal.{self.crawl}.{channel}"

    async def delete(self, channel: Channel) -> None:
        link = AmqpLink(amqp_address(self._url))
        await link.delete(f"shoal.{self.crawl}.{channel}")
        await link.close()


class SqsRig(Connecting):
    """An SQS server. The environment must name it."""

    most_bytes = 256 * 1024

    def connect(self) -> Publisher:
        return self.connected(f"sqs://us-east-1/{self.crawl}")

    def address_of(self, channel: Channel) -> str:
        name = self.crawl if channel is Channel.ITEMS else f"{self.crawl}-{channel}"
        return f"sqs://us-east-1/{name}"

    async def make(self) -> None:
        link = SqsLink(sqs_address(self.address_of(Channel.ITEMS)))
        await link.call("create_queue", QueueName=self.crawl)
        await link.close()

    async def delete(self, channel: Channel) -> None:
        link = SqsLink(sqs_address(self.address_of(channel)))
        found = await link.call("get_queue_url", QueueName=f"{self.crawl}-{channel}")
        await link.call("delete_queue", QueueUrl=found["QueueUrl"])
        await link.close()


class RedisRig(Connecting):
    most_bytes = on_redis.MOST_BYTES

    def __init__(self, server: RedisServer, network: TcpProxy, scheme: str) -> None:
        super().__init__(network)
        self._server = server
        self._scheme = scheme

    def connect(self) -> Publisher:
        return self.connected(f"{self._scheme}://127.0.0.1:{self.network.port}?key={self.crawl}")

    def address_of(self, channel: Channel) -> str:
        kind = "stream" if self._scheme == "redis-stream" else "list"
        return f"{self._server.url}?key={self._key(channel)}&type={kind}"

    async def delete(self, channel: Channel) -> None:
        self._server.client().delete(self._key(channel))

    def _key(self, channel: Channel) -> str:
        return self.crawl if channel is Channel.ITEMS else f"{self.crawl}:{channel}"


def published(address: str) -> list[Wire]:
    """Take all messages from a queue, given as an address of `shoal feed`."""

    async def take_all() -> list[Wire]:
        source, found = open_source(address), list[Wire]()
        try:
            while taken := await source.take(1000, 1):
                found += [one.wire for one in taken]
                await source.done(taken)
        finally:
            await source.close()
        return found

    return asyncio.run(take_all())


def told(address: str) -> list[dict[str, Any]]:
    """Take all messages from a queue of plain messages, and read them as JSON."""
    return [json.loads(wire.body) for wire in published(address)]
