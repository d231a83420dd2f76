"""Publishes to an exchange of RabbitMQ, or to queues of the crawl's own. Needs the extra `amqp`.

amqp://host                    queues shoal.<crawl>.items, .dead, .finished
amqp://host/exchange           these are routing keys; dead ones also go to the queue .dead
amqp://host/vhost/exchange
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.addresses import Address
from shoal.drivers.amqp.failures import QueueGone
from shoal.drivers.amqp.link import DEFAULT_VHOST, AmqpLink, amqp_address
from shoal.drivers.amqp.link import Message as Outgoing
from shoal.errors import ConfigError, StorageBusy, unreachable
from shoal.frontier.broker.carriers.rabbit import queue_name
from shoal.publish.port import Channel, Message, Publisher, larger_than

MOST_BYTES = 16 * 2**20
"""The default limit of RabbitMQ 4. Older versions allow more."""
DEFAULT_EXCHANGE = "amq.default"
"""The name that RabbitMQ's tools give to the exchange without a name. Its routing keys are names of
queues."""


class AmqpPublisher(Publisher):
    """Publishes to an exchange or to queues. Queues are declared as most consumers declare them:
    durable, without arguments. Existing queues are used as they are."""

    def __init__(self, address: str, crawl: str) -> None:
        where = amqp_address(address)
        self.shown = where.shown
        vhost, self._exchange = _exchange(where)
        self._link = AmqpLink(where, vhost)
        self._keys = {channel: queue_name(f"shoal.{crawl}.{channel}") for channel in Channel}
        own = (Channel.DEAD,) if self._exchange else Channel
        self._queues = [self._keys[channel] for channel in own]

    async def check(self, *, makes: bool = True) -> None:
        try:
            await self._find_exchange()
            if makes:
                await self._declare()
            else:
                await self._link.connect()
        except StorageBusy as error:
            raise unreachable(error) from None

    def too_large(self, message: Message) -> str:
        return larger_than(MOST_BYTES, len(message.wire.body))

    async def publish(self, messages: Sequence[Message]) -> None:
        direct = [one for one in messages if self._keys[one.channel] in self._queues]
        to_queues = [self._outgoing(one, "") for one in direct]
        if to_queues:
            try:
                await self._link.publish(to_queues)
            except QueueGone:  # Somebody has deleted a queue. Some messages may be sent twice.
                await self._declare()
                await self._link.publish(to_queues)
        if self._exchange:
            await self._to_exchange(messages)

    async def close(self) -> None:
        await self._link.close()

    async def _to_exchange(self, messages: Sequence[Message]) -> None:
        try:
            await self._link.publish([self._outgoing(one, self._exchange) for one in messages])
        except QueueGone:
            await self._find_exchange()
            raise StorageBusy(
                f"{self.shown}: no queue is bound to it for {self._keys[Channel.ITEMS]!r}"
            ) from None

    async def _find_exchange(self) -> None:
        if not self._exchange:
            return
        try:
            await self._link.find_exchange(self._exchange)
        except QueueGone as error:
            raise ConfigError(f"{error}: declare it first, as those who read do") from None

    async def _declare(self) -> None:
        for queue in self._queues:
            try:
                await self._link.count(queue)
            except QueueGone:
                await self._link.declare(queue, {})

    def _outgoing(self, message: Message, exchange: str) -> Outgoing:
        return Outgoing(
            key=self._keys[message.channel],
            body=message.wire.body,
            id=message.id,
            exchange=exchange,
            content_type=message.wire.content_type,
            headers=dict(message.wire.headers),
            # On an exchange, only items must reach a queue.
            must_arrive=not exchange or message.channel is Channel.ITEMS,
        )


def _exchange(address: Address) -> tuple[str, str]:
    """The virtual host and the exchange in an address. Empty: the default exchange."""
    match address.segments:
        case []:
            vhost, exchange = DEFAULT_VHOST, ""
        case [exchange]:
            vhost = DEFAULT_VHOST
        case [vhost, exchange]:
            pass
        case _:
            raise ConfigError(
                f"{address.shown}: write amqp://host, amqp://host/exchange or /vhost/exchange"
            )
    return vhost, "" if exchange == DEFAULT_EXCHANGE else exchange
