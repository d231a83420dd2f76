"""Calls RabbitMQ: declares queues, publishes, takes and acknowledges, each with a time limit.

Nothing is retried here. After StorageBusy a message may have been published all the same. Messages
that were taken and not acknowledged are delivered again.
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
"""Bytes per second that extend this limit for large messages."""
QUIET_S = 0.5
"""If no message arrives for this long, those that were counted have gone to other clients."""
LATE_S = 60.0
"""The longest time for which a message may be on its way to us."""
AT_ONCE = 256
"""How many messages are published without waiting for the confirmation of the first."""

DEFAULT_PORT = 5672
TLS_PORT = 5671
DEFAULT_VHOST = "/"
PERSISTENT = 2

CALLS_AT_ONCE = 8
"""How many calls of one kind may run in parallel, each over a channel of its own."""

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
    """Whether it is an error if no queue gets the message."""


class Taken(msgspec.Struct, frozen=True):
    """A message that was taken. It is delivered again unless it is acknowledged."""

    body: bytes
    properties: spec.Basic.Properties
    tag: int
    channel: AbstractChannel


class AmqpLink:
    """Publishes over one connection and makes all other calls over another. A broker that is short
    of memory or disk stops reading from connections that publish, but has to read
    acknowledgements, which make room."""

    def __init__(self, address: Address, vhost: str = DEFAULT_VHOST) -> None:
        """`address` comes from `amqp_address`."""
        self.shown = address.shown
        self._out = AmqpConnection(address, vhost)
        self._in = AmqpConnection(address, vhost)
        # An error closes the channel of its call, so calls in parallel do not share channels.
        self._askers, self._takers = _names("ask"), _names("take")

    async def connect(self) -> None:
        """Connect and log in. Raises ConfigError if that is refused."""
        async with self._free(self._askers):
            pass

    async def declare(self, queue: str, arguments: Mapping[str, Any]) -> None:
        """Create a durable queue, if there is none. Raises DeclaredOtherwise if there is one with
        other arguments."""
        async with self._free(self._askers) as channel:
            await channel.queue_declare(queue, durable=True, arguments=dict(arguments))

    async def count(self, queue: str) -> int:
        """How many messages wait, without those that somebody has taken. Raises QueueGone."""
        async with self._free(self._askers) as channel:
            return (await channel.queue_declare(queue, passive=True)).message_count or 0

    async def find_exchange(self, exchange: str) -> None:
        """Check that there is such an exchange. Raises QueueGone."""
        async with self._free(self._askers) as channel:
            await channel.exchange_declare(exchange, passive=True)

    async def delete(self, queue: str) -> None:
        """Delete a queue with all its messages. Not an error if there is none."""
        async with self._free(self._askers) as channel:
            await channel.queue_delete(queue)

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages. Returns when the broker has confirmed all of them. Raises QueueGone."""
        for start in range(0, len(messages), AT_ONCE):
            await self._publish(messages[start : start + AT_ONCE])

    async def get(self, queue: str, limit: int) -> list[Taken]:
        """Take up to `limit` waiting messages. Raises QueueGone."""
        # Count over another channel: if the queue is gone, the error closes the channel, and
        # messages that were taken over it could not be acknowledged any more.
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
                # Taking them one by one with `basic.get` takes ten times as long on quorum queues.
                tag = await self._begin(channel, queue, waiting, receive)
                while len(taken) < waiting and await _in_time(coming.wait(), QUIET_S):
                    coming.clear()
                await channel.basic_cancel(tag)
                if len(taken) < waiting:
                    _give_back_late_ones(channel, tag)
            except asyncio.CancelledError:
                self._in.drop()  # The caller never learns what was taken, so others must get it.
                raise
        return taken

    async def consume(self, queue: str, prefetch: int) -> asyncio.Queue[Taken | None]:
        """Receive messages as they are published. At most `prefetch` are unacknowledged at a time.
        None in the queue means the end: the broker's queue or the connection is gone. Raises
        QueueGone."""
        coming = asyncio.Queue[Taken | None]()
        async with self._channel(self._in, f"consume {queue}") as channel:

            async def receive(message: DeliveredMessage) -> None:
                coming.put_nowait(_taken(message, channel))

            channel.closing.add_done_callback(lambda _: coming.put_nowait(None))
            channel.on_consumer_cancel_callbacks.add(lambda *_: coming.put_nowait(None))
            await self._begin(channel, queue, prefetch, receive)
        return coming

    async def ack(self, taken: Sequence[Taken]) -> None:
        """Acknowledge messages. Those whose channel is closed are delivered again anyway."""
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
        """Begin to consume a queue. Returns the tag with which to cancel that."""
        await channel.basic_qos(prefetch_count=prefetch)
        return (await channel.basic_consume(queue, receive)).consumer_tag or ""

    async def _publish(self, messages: Sequence[Message]) -> None:
        if self._out.is_blocked:
            raise self._alarm()
        size = sum(len(message.body) for message in messages)
        async with self._channel(self._out, _PUBLISH, size) as channel:
            sending = (_send(channel, message) for message in messages)
            # Wait for all of them: cancelling one would leave the channel in disorder.
            for error in await asyncio.gather(*sending, return_exceptions=True):
                if error is not None:
                    raise error

    @asynccontextmanager
    async def _free(self, names: _Names) -> AsyncIterator[AbstractChannel]:
        """Borrow a channel that no other call uses meanwhile."""
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
        """A channel for one call, with a time limit that grows with `size` in bytes. Errors become
        Shoal's. A connection that does not answer is dropped, unless the broker has announced that
        it accepts no messages for now."""
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
    """Requeue messages that arrive after consuming was cancelled. Otherwise they would stay
    assigned to this client, which does not know of them."""

    async def give_back(message: DeliveredMessage) -> None:
        await channel.basic_nack(message.delivery_tag or 0, requeue=True)

    consumers = cast(Channel, channel).consumers
    consumers[tag] = give_back
    asyncio.get_running_loop().call_later(LATE_S, consumers.pop, tag, None)


def _taken(message: DeliveredMessage, channel: AbstractChannel) -> Taken:
    return Taken(message.body, message.header.properties, message.delivery_tag or 0, channel)


def amqp_address(text: str, more_options: Collection[str] = ()) -> Address:
    """Read the address of a broker. It may have `more_options`, and with amqps:// also `ca`. Raises
    ConfigError."""
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
