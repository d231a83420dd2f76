"""Takes messages from a queue of RabbitMQ. Needs the extra `amqp`."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pamqp.encode import field_table

from shoal.core.addresses import Address
from shoal.drivers.amqp.failures import QueueGone
from shoal.drivers.amqp.link import DEFAULT_VHOST, AmqpLink, Taken, amqp_address
from shoal.drivers.amqp.link import Message as Outgoing
from shoal.errors import ConfigError, StorageBusy
from shoal.feeds.formats import Wire
from shoal.feeds.port import Message, Rejected, Source, printable

PREFETCH = 1000
"""The maximum number of unacknowledged messages. It bounds the memory they take, and how many are
delivered again if this process dies."""


HEADERS_KEPT = 64 * 1024
"""The maximum size of the headers that a rejected message keeps. RabbitMQ closes the connection if
the headers of a message do not fit into a frame, by default of 128 KB."""


class AmqpSource(Source):
    """A queue of RabbitMQ, which pushes its messages: there is no polling."""

    def __init__(self, address: str) -> None:
        where = amqp_address(address)
        self.shown = where.shown
        vhost, self._queue = _queue(where)
        self._link = AmqpLink(where, vhost)
        self._coming: asyncio.Queue[Taken | None] | None = None

    async def take(self, limit: int, wait_s: float) -> list[Message]:
        coming = await self._consuming()
        taken = list[Message]()
        try:
            async with asyncio.timeout(wait_s):
                first = await coming.get()
        except TimeoutError:
            return taken
        while first is not None:
            taken.append(_message(first))
            if len(taken) >= limit or coming.empty():
                return taken
            first = coming.get_nowait()
        self._coming = None
        if not taken:
            raise StorageBusy(f"{self.shown}: the connection was closed")
        return taken

    async def done(self, messages: Sequence[Message]) -> None:
        await self._link.ack([m.receipt for m in messages if isinstance(m.receipt, Taken)])

    async def reject(self, rejected: Sequence[Rejected]) -> None:
        aside = f"{self._queue}.rejected"
        sent = [_aside(aside, one) for one in rejected]
        try:
            await self._link.publish(sent)
        except QueueGone:
            await self._link.declare(aside, {})
            await self._link.publish(sent)
        await self.done([one.message for one in rejected])

    async def waiting(self) -> int:
        try:
            return await self._link.count(self._queue)
        except QueueGone as error:
            raise self._missing(error) from None

    async def close(self) -> None:
        await self._link.close()

    async def _consuming(self) -> asyncio.Queue[Taken | None]:
        if self._coming is None:
            try:
                self._coming = await self._link.consume(self._queue, PREFETCH)
            except QueueGone as error:
                raise self._missing(error) from None
        return self._coming

    def _missing(self, error: QueueGone) -> ConfigError:
        """The error for a missing queue. Only its publisher knows with which arguments to declare
        it."""
        return ConfigError(f"{error}: declare it first, as those who publish do")


def _queue(address: Address) -> tuple[str, str]:
    """The virtual host and the queue in an address."""
    match address.segments:
        case [queue]:
            return DEFAULT_VHOST, queue
        case [vhost, queue]:
            return vhost, queue
    raise ConfigError(f"{address.shown}: which queue? write amqp://host/queue or /vhost/queue")


def _message(taken: Taken) -> Message:
    properties = taken.properties
    headers: dict[str, Any] = dict(properties.headers or {})
    wire = Wire(taken.body, headers, properties.content_type or "")
    # Celery's id is that of the task. A retry has the same id, and is the same work.
    identity = properties.message_id or headers.get("id") or ""
    return Message(wire, taken, str(identity))


def _aside(queue: str, rejected: Rejected) -> Outgoing:
    wire = rejected.message.wire
    return Outgoing(
        key=queue,
        body=wire.body,
        id=uuid4().hex,
        headers={**headers_to_keep(wire.headers), "shoal-reason": printable(rejected.reason)},
        content_type=wire.content_type or None,
    )


def headers_to_keep(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """The headers, if they can be sent again beside a reason. Otherwise none."""
    try:
        return headers if len(field_table(dict(headers))) <= HEADERS_KEPT else {}
    except (TypeError, ValueError, struct.error):  # A type that the library only reads.
        return {}
