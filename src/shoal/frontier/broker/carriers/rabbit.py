"""Keeps blocks in RabbitMQ: a lane is a durable queue, a block a persistent message. Needs the
extra `amqp`.

Fetched blocks belong to the connection: however it ends, RabbitMQ then delivers them to others.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import quote

from shoal.core.addresses import Address
from shoal.drivers.amqp.failures import DeclaredOtherwise, QueueGone
from shoal.drivers.amqp.link import DEFAULT_VHOST, AmqpLink, Message, Taken, amqp_address
from shoal.errors import ConfigError
from shoal.frontier.broker.carrier import Block, Carrier, Delivery
from shoal.frontier.broker.carriers.strangers import sorted_out
from shoal.frontier.broker.encoding import encode

MOST_BYTES = 8 * 2**20
MAX_NAME = 255
_OTHERS = re.compile("[^A-Za-z0-9-_.:@#,/+ ]")
"""Characters that the AMQP library does not allow in names of queues."""
SETTLES_S = 2.0
"""How long to wait after creating a quorum queue: if RabbitMQ 3.10 is killed within a second of
that, it loses track of the queue's messages, even confirmed ones."""
CONTENT_TYPE = "application/x-shoal-block"

KINDS = ("quorum", "classic")
# A full queue rejects messages. The default is to discard those that have waited longest.
_KEEPS = {"x-overflow": "reject-publish"}
# RabbitMQ 4 discards messages after 20 deliveries by default. No value for "never" is understood by
# both RabbitMQ 4 and older versions.
_ALWAYS = {"x-delivery-limit": 2**30}


class RabbitCarrier(Carrier):
    """A virtual host of a broker. Queues are quorum queues. With `?queues=classic` in the address,
    a broker of a single server uses less memory and disk."""

    def __init__(self, address: str, more_options: Collection[str] = ()) -> None:
        where = amqp_address(address, {"queues", *more_options})
        kind = where.options.get("queues", KINDS[0])
        if kind not in KINDS:
            raise ConfigError(f"{where.shown}: queues is one of {', '.join(KINDS)}")
        self._kind = kind
        (host, port), *_ = where.hosts
        shown = f"[{host}]" if ":" in host else host.lower()
        self._name = f"{where.scheme}://{shown}:{port}/{quote(_vhost(where), safe='')}"
        self._made_at: dict[str, float] = {}
        self._known = set[str]()
        """Lanes whose queues are known to exist with the right arguments."""
        self._arguments: dict[str, Any] = {"x-queue-type": kind, **_KEEPS}
        if kind == "quorum":
            self._arguments |= _ALWAYS
        self._link = AmqpLink(where, _vhost(where))

    @property
    def name(self) -> str:
        return self._name

    @property
    def most_bytes(self) -> int:
        return MOST_BYTES

    async def declare(self, lane: str) -> None:
        name, is_there = queue_name(lane), True
        try:
            await self._link.count(name)
        except QueueGone:
            is_there = False
        try:
            await self._link.declare(name, self._arguments)
            if not is_there:
                self._made_at[lane] = time.monotonic()
        except DeclaredOtherwise:
            raise
        except ConfigError:
            if not is_there:  # An existing queue may be used without permission to declare it.
                raise

    async def publish(self, blocks: Sequence[Block]) -> None:
        messages = [_message(block) for block in blocks]
        lanes = {block.lane for block in blocks}
        # A queue that somebody has created with other arguments may discard messages.
        await self._declare(lanes - self._known)
        try:
            await self._link.publish(messages)
        except QueueGone:
            await self._declare(lanes)
            # Some messages may now be there twice.
            await self._link.publish(messages)
        await self._settled(lanes)

    async def _declare(self, lanes: Collection[str]) -> None:
        """Declare lanes in parallel: a server needs a tenth of a second or more for a new queue."""
        making = (self.declare(lane) for lane in lanes)
        for error in await asyncio.gather(*making, return_exceptions=True):
            if error is not None:
                raise error
        self._known.update(lanes)

    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        try:
            taken = await self._link.get(queue_name(lane), limit)
        except QueueGone:
            return []
        found = ((one.body, one) for one in taken)
        deliveries, strangers = sorted_out(found, lane, MOST_BYTES)
        if strangers:
            await self.ack(strangers)
        return deliveries

    async def ack(self, receipts: Sequence[object]) -> None:
        await self._link.ack([one for one in receipts if isinstance(one, Taken)])

    async def count(self, lane: str) -> int:
        try:
            return await self._link.count(queue_name(lane))
        except QueueGone:
            return 0

    async def drop(self, lane: str) -> None:
        await self._link.delete(queue_name(lane))

    async def close(self) -> None:
        await self._link.close()

    async def _settled(self, lanes: Collection[str]) -> None:
        """Wait until new queues would survive if the broker is killed: see `SETTLES_S`."""
        made_at = [self._made_at[lane] for lane in lanes if lane in self._made_at]
        if self._kind == "quorum" and made_at:
            await asyncio.sleep(max(made_at) + SETTLES_S - time.monotonic())


def queue_name(lane: str) -> str:
    """The name of a lane's queue: that of the lane, if AMQP allows it. Otherwise as much of it as
    is allowed, and a digest."""
    if not _OTHERS.search(lane) and len(lane) <= MAX_NAME:
        return lane
    digest = hashlib.sha256(lane.encode()).hexdigest()[:16]
    return f"{_OTHERS.sub('_', lane)[: MAX_NAME - 17]}.{digest}"


def _vhost(address: Address) -> str:
    if len(address.segments) > 1:
        raise ConfigError(f"{address.shown}: a virtual host, or none (write its / as %2F)")
    return address.segments[0] if address.segments else DEFAULT_VHOST


def _message(block: Block) -> Message:
    return Message(
        key=queue_name(block.lane),
        body=encode(block),
        id=f"{block.id:016x}",
        type="shoal.block",
        content_type=CONTENT_TYPE,
        headers={"tasks": len(block.entries)},
    )
