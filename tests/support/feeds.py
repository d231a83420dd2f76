"""External queues that feeds read, one class per kind, with ways to fill and inspect them."""

from __future__ import annotations

import itertools
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import redis

from shoal.drivers.amqp.link import AmqpLink, Message, amqp_address
from shoal.drivers.sqs import SqsLink, sqs_address
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer

_numbers = itertools.count()


class Aside(NamedTuple):
    """A message that was set aside as rejected."""

    body: str
    reason: str


class Queue(Protocol):
    """A queue, empty at first."""

    address: str
    environment: Mapping[str, str] = {}

    @abstractmethod
    async def send(self, bodies: Sequence[bytes]) -> None: ...

    @abstractmethod
    async def rejected(self) -> list[Aside]: ...

    @abstractmethod
    async def close(self) -> None: ...


class RabbitQueue(Queue):
    def __init__(self, server: RabbitServer) -> None:
        self.name = f"urls{next(_numbers)}"
        self.address = f"{server.url.removesuffix('%2F')}{self.name}"
        self._link = AmqpLink(amqp_address(server.url))

    async def send(self, bodies: Sequence[bytes]) -> None:
        await self._link.declare(self.name, {})
        numbered = ((body, f"{self.name} {next(_numbers)}") for body in bodies)
        await self._link.publish([Message(key=self.name, body=b, id=i) for b, i in numbered])

    async def send_with_headers(self, body: bytes, headers: dict[str, Any]) -> None:
        await self._link.publish([Message(key=self.name, body=body, id="1", headers=headers)])

    async def rejected(self) -> list[Aside]:
        taken = await self._link.get(f"{self.name}.rejected", 100)
        return [
            Aside(one.body.decode(), str((one.properties.headers or {})["shoal-reason"]))
            for one in taken
        ]

    async def close(self) -> None:
        await self._link.close()


class SqsQueue(Queue):
    """An SQS queue. The environment must name the server."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.name = f"urls{next(_numbers)}"
        self.address = f"sqs://us-east-1/{self.name}"
        self._link = SqsLink(sqs_address(self.address))

    async def send(self, bodies: Sequence[bytes]) -> None:
        made = await self._link.call("create_queue", QueueName=self.name)
        for start in range(0, len(bodies), 10):
            some = enumerate(bodies[start : start + 10])
            entries = [{"Id": str(i), "MessageBody": body.decode()} for i, body in some]
            url = made["QueueUrl"]
            await self._link.call("send_message_batch", QueueUrl=url, Entries=entries)

    async def rejected(self) -> list[Aside]:
        found = await self._link.call("get_queue_url", QueueName=f"{self.name}-rejected")
        answer = await self._link.call(
            "receive_message",
            QueueUrl=found["QueueUrl"],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
        )
        return [
            Aside(one["Body"], one["MessageAttributes"]["shoal-reason"]["StringValue"])
            for one in answer.get("Messages", [])
        ]

    async def close(self) -> None:
        await self._link.close()


class RedisQueue(Queue):
    def __init__(self, server: RedisServer, kind: str) -> None:
        self._is_stream = kind == "stream"
        self.name = f"urls{next(_numbers)}"
        self.address = f"{server.url}?key={self.name}&type={kind}"
        self._client: redis.Redis = server.client()

    async def send(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            if self._is_stream:
                self._client.xadd(self.name, {"message": body})
            else:
                self._client.lpush(self.name, body)

    async def rejected(self) -> list[Aside]:
        kept: Any = self._client.lrange(f"{self.name}:rejected", 0, -1)
        records = [json.loads(record) for record in kept]
        return [Aside(record["entry"], record["reason"]) for record in records]

    async def close(self) -> None:
        self._client.close()
