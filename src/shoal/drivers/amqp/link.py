"""The connection to RabbitMQ: queues, messages in and out, each call with a limit of time.

Nothing is retried here. After StorageBusy a message may have been published all the same, and what
was taken and not acknowledged comes again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
from aiormq import Channel, spec
from aiormq.abc import AbstractChannel, ConsumerCallback, DeliveredMessage

from shoal.core.addresses import Address, parse_address
from shoal.drivers.amqp.connection import AmqpConnection
from shoal.drivers.amqp.failures import translated
from shoal.errors import ConfigError, StorageBusy

ANSWER_S = 15.0
"""A broker that has not answered for this long is away."""
SLOWEST_BYTES_S = 50_000
"""Large messages may take longer, as long as they come along at this speed."""
QUIET_S = 0.5
"""Messages that were counted and have not come by then have gone to others."""
LATE_S = 60.0
"""No message is on its way for longer."""
AT_ONCE = 256
"""Messages that are published before the first of them must be confirmed."""

DEFAULT_PORT = 5672
TLS_PORT = 5671
DEFAULT_VHOST = "/"
PERSISTENT = 2

CALLS_AT_ONCE = 8
"""Calls of one sort that are under way together, each over a channel of its own."""

_PUBLISH = "publish"

_Names = asyncio.LifoQueue[str]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message to publish: to a queue by its name, or to an exchange."""

    key: str
    body: bytes
    id: str
    exchange: str = ""
    type: str | None = None
    content_type: str | None = None
    headers: dict[str, Any] = {}
    must_arrive: bool = True
    """Whether it is an error that no queue gets it. Else it is for whoever listens."""


class Taken(msgspec.Struct, frozen=True):
    """A message that was taken. It comes again unless it is acknowledged."""

    body: bytes
    properties: spec.Basic.Properties
    tag: int
    channel: AbstractChannel


class AmqpLink:
    """Publishes over one connection and does all else over another: a broker that is short of
    memory or disk stops reading from those who publish, and what is acknowledged makes room."""

    def __init__(self, address: Address, vhost: str = DEFAULT_VHOST) -> None:
        """`address` has been through `check`."""
        self.shown = address.shown
        self._out = AmqpConnection(address, vhost)
        self._in = AmqpConnection(address, vhost)
        # An error of one call ends its channel: so no two use the same one.
        self._askers, self._takers = _names("ask"), _names("take")

    async def connect(self) -> None:
        """Look whether the broker lets us in."""
        async with self._free(self._askers):
            pass

    async def declare(self, queue: str, arguments: Mapping[str, Any]) -> None:
        """Make a durable queue, if there is none. ConfigError if it is there, but another kind."""
        async with self._free(self._askers) as channel:
            await channel.queue_declare(queue, durable=True, arguments=dict(arguments))

    async def count(self, queue: str) -> int:
        """The messages that wait, without those somebody has taken. Raises QueueGone."""
        async with self._free(self._askers) as channel:
            return (await channel.queue_declare(queue, passive=True)).message_count or 0

    async def find_exchange(self, exchange: str) -> None:
        """Look whether there is an exchange. Raises QueueGone."""
        async with self._free(self._askers) as channel:
            await channel.exchange_declare(exchange, passive=True)

    async def delete(self, queue: str) -> None:
        """Delete a queue with all that is in it. Not an error if there is none."""
        async with self._free(self._askers) as channel:
            await channel.queue_delete(queue)

    async def publish(self, messages: Sequence[Message]) -> None:
        """Back when the broker has confirmed all of them. Raises QueueGone."""
        for start in range(0, len(messages), AT_ONCE):
            await self._publish(messages[start : start + AT_ONCE])

    async def get(self, queue: str, limit: int) -> list[Taken]:
        """Take at most so many messages of those that wait. Raises QueueGone."""
        # A queue that is gone would close the channel, with all that was taken over it before.
        waiting = min(limit, await self.count(queue))
        taken = list[Taken]()
        if not waiting:
            return taken
        coming = asyncio.Event()
        async with self._free(self._takers) as channel:

            async def receive(message: DeliveredMessage) -> None:
                taken.append(_taken(message, channel))
                coming.set()

            try:
                # One by one, by `basic.get`, takes ten times as long with quorum queues.
                tag = await self._begin(channel, queue, waiting, receive)
                while len(taken) < waiting and await _in_time(coming.wait(), QUIET_S):
                    coming.clear()
                await channel.basic_cancel(tag)
                if len(taken) < waiting:
                    _give_back_late_ones(channel, tag)
            except asyncio.CancelledError:
                self._in.drop()  # Nobody will know what was taken: so others get it.
                raise
        return taken

    async def consume(self, queue: str, prefetch: int) -> asyncio.Queue[Taken | None]:
        """Messages as they come, at most so many that are not acknowledged. None is the end: the
        queue or the connection is gone. Raises QueueGone."""
        coming = asyncio.Queue[Taken | None]()
        async with self._channel(self._in, f"consume {queue}") as channel:

            async def receive(message: DeliveredMessage) -> None:
                coming.put_nowait(_taken(message, channel))

            channel.closing.add_done_callback(lambda _: coming.put_nowait(None))
            channel.on_consumer_cancel_callbacks.add(lambda *_: coming.put_nowait(None))
            await self._begin(channel, queue, prefetch, receive)
        return coming

    async def ack(self, taken: Sequence[Taken]) -> None:
        """Forget messages. Those whose channel is closed come again anyway."""
        with translated(self.shown):
            async with asyncio.timeout(ANSWER_S):
                for one in taken:
                    if not one.channel.is_closed:
                        await one.channel.basic_ack(one.tag, wait=one is taken[-1])

    async def close(self) -> None:
        """Close the connections. Not an error if the broker is gone."""
        await asyncio.gather(self._out.close(), self._in.close())

    async def _begin(
        self, channel: AbstractChannel, queue: str, prefetch: int, receive: ConsumerCallback
    ) -> str:
        """Have messages sent to us. Returns the tag by which that is ended."""
        await channel.basic_qos(prefetch_count=prefetch)
        return (await channel.basic_consume(queue, receive)).consumer_tag or ""

    async def _publish(self, messages: Sequence[Message]) -> None:
        if self._out.is_blocked:
            raise self._alarm()
        size = sum(len(message.body) for message in messages)
        async with self._channel(self._out, _PUBLISH, size) as channel:
            sending = (_send(channel, message) for message in messages)
            # All are waited for: one that is told to stop would leave the channel in disorder.
            for error in await asyncio.gather(*sending, return_exceptions=True):
                if error is not None:
                    raise error

    @asynccontextmanager
    async def _free(self, names: _Names) -> AsyncIterator[AbstractChannel]:
        """A channel that nobody else uses meanwhile."""
        name = await names.get()
        try:
            async with self._channel(self._in, name) as channel:
                yield channel
        finally:
            names.put_nowait(name)

    @asynccontextmanager
    async def _channel(
        self, connection: AmqpConnection, name: str, size: int = 0
    ) -> AsyncIterator[AbstractChannel]:
        """A channel for one call, whose errors become ours. A connection that does not answer is
        dropped, unless the broker has said that it will not for a while."""
        channel = await connection.channel(name)
        limit = asyncio.timeout(ANSWER_S + size / SLOWEST_BYTES_S)
        try:
            with translated(self.shown):
                async with limit:
                    yield channel
        except StorageBusy:
            if not limit.expired():
                raise
            if connection.is_blocked:
                raise self._alarm() from None
            connection.drop()
            raise

    def _alarm(self) -> StorageBusy:
        return StorageBusy(
            f"{self.shown} takes no messages: it is short of memory or disk space (an alarm)"
        )


def _names(purpose: str) -> _Names:
    names = _Names()
    for number in reversed(range(CALLS_AT_ONCE)):
        names.put_nowait(f"{purpose} {number}")
    return names


async def _in_time(coming: Awaitable[object], limit_s: float) -> bool:
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            await coming
    except TimeoutError:
        if not limit.expired():
            raise
        return False
    return True


async def _send(channel: AbstractChannel, message: Message) -> None:
    properties = spec.Basic.Properties(
        delivery_mode=PERSISTENT,
        message_id=message.id,
        message_type=message.type,
        content_type=message.content_type,
        headers=message.headers,
        app_id="shoal",
    )
    await channel.basic_publish(
        message.body,
        exchange=message.exchange,
        routing_key=message.key,
        properties=properties,
        mandatory=message.must_arrive,
    )


def _give_back_late_ones(channel: AbstractChannel, tag: str) -> None:
    """What was on its way to us when we had heard enough would be ours, and nobody would know."""

    async def give_back(message: DeliveredMessage) -> None:
        await channel.basic_nack(message.delivery_tag or 0, requeue=True)

    consumers = cast(Channel, channel).consumers
    consumers[tag] = give_back
    asyncio.get_running_loop().call_later(LATE_S, consumers.pop, tag, None)


def _taken(message: DeliveredMessage, channel: AbstractChannel) -> Taken:
    return Taken(message.body, message.header.properties, message.delivery_tag or 0, channel)


def amqp_address(text: str, more_options: Collection[str] = ()) -> Address:
    """Read the address of a broker. `more_options` are allowed beside `ca`. Raises ConfigError."""
    address = parse_address(text, TLS_PORT if text.startswith("amqps:") else DEFAULT_PORT)
    allowed = {*more_options, *(["ca"] if address.scheme == "amqps" else [])}
    unknown = sorted(set(address.options) - allowed)
    if unknown:
        there_are = ", ".join(sorted(allowed)) or "none"
        raise ConfigError(
            f"{address.shown}: unknown option {', '.join(unknown)} (there are: {there_are})"
        )
    if len(address.hosts) > 1:
        raise ConfigError(f"{address.shown}: one host (put a load balancer before several)")
    return address
