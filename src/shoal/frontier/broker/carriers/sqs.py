"""Keeps blocks in SQS: a lane is a standard queue, a block a message. Needs the extra `sqs`.

SQS has no connections: a fetched message is invisible to others for `HELD_S`, and is then delivered
again. SQS keeps messages for two weeks at most, and silently deletes older ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from shoal.drivers.sqs import ExistsOtherwise, QueueGone, SqsLink, sqs_address
from shoal.errors import ConfigError, StorageBusy, StorageFailed
from shoal.frontier.broker.carrier import Block, Carrier, Delivery
from shoal.frontier.broker.carriers.sqs_requests import (
    REQUEST_MESSAGES,
    batches,
    bytes_of,
    cut,
    more_billed,
)
from shoal.frontier.broker.carriers.strangers import sorted_out

REQUEST_PRICE = 0.40 / 1e6
"""Dollars per request, for standard queues in most regions, after the first million per month."""
KEPT_S = 14 * 24 * 3600
"""How long messages are kept: the maximum that SQS allows."""
HELD_S = 120
"""How long a fetched block is held: longer than it takes to acknowledge it."""
POLL_S = 2
"""How long to wait for a block. Without a wait, SQS asks only some of its servers, and may miss
messages."""
MOST_BYTES = 180_000
"""Even if zlib saves nothing, a block of this size in base64, with its headers, fits into a
message."""
AT_ONCE = 8
"""Requests that are sent in parallel."""

MAX_NAME = 80
_PREFIX = re.compile("[A-Za-z0-9_-]{1,40}")
_OTHERS = re.compile("[^A-Za-z0-9_-]+")
_SIZES = (
    *("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"),
    "ApproximateNumberOfMessagesDelayed",
)


class Receipt(NamedTuple):
    """Identifies a fetched message, for SQS to delete it."""

    lane: str
    handle: str


class SqsCarrier(Carrier):
    """Keeps blocks in the queues of one region whose names begin with a prefix."""

    def __init__(
        self, address: str, more_options: Collection[str] = (), *, held_s: int = HELD_S
    ) -> None:
        """Tests set a shorter `held_s`."""
        where = sqs_address(address, more_options)
        (self._prefix,) = where.segments
        if not _PREFIX.fullmatch(self._prefix):
            raise ConfigError(f"{where.shown}: a prefix is up to 40 letters, digits, - and _")
        self._link = SqsLink(where)
        self._held_s = held_s
        self._urls: dict[str, str] = {}
        self._name = f"{where.scheme}://{where.hosts[0][0]}/{self._prefix}"

    @property
    def name(self) -> str:
        return self._name

    @property
    def most_bytes(self) -> int:
        return MOST_BYTES

    @property
    def kept_s(self) -> float:
        return KEPT_S

    @property
    def requests(self) -> int:
        return self._link.requests

    @property
    def request_price(self) -> float:
        return REQUEST_PRICE

    async def declare(self, lane: str) -> None:
        name = self.queue_name(lane)
        attributes = {"MessageRetentionPeriod": str(KEPT_S), "VisibilityTimeout": str(HELD_S)}
        try:
            made = await self._link.call("create_queue", QueueName=name, Attributes=attributes)
            self._urls[lane] = made["QueueUrl"]
        except ExistsOtherwise:
            self._urls[lane] = await self._link.url_of(name)
        await self._check(lane, name)

    async def publish(self, blocks: Sequence[Block]) -> None:
        by_lane = groupby(sorted(blocks, key=lambda block: block.lane), lambda block: block.lane)
        requests = [(lane, entries) for lane, group in by_lane for entries in batches(group)]
        for some in cut(requests, AT_ONCE):
            await asyncio.gather(*(self._send(lane, entries) for lane, entries in some))

    async def fetch(self, lane: str, limit: int) -> list[Delivery]:
        fetched = list[Delivery]()
        while len(fetched) < limit:
            wanted = min(limit - len(fetched), REQUEST_MESSAGES)
            found = await self._receive(lane, wanted)
            deliveries, strangers = sorted_out(found, lane, MOST_BYTES)
            fetched += deliveries
            if strangers:
                await self.ack(strangers)
            if len(found) < wanted:
                break
        return fetched

    async def ack(self, receipts: Sequence[object]) -> None:
        ours = sorted(one for one in receipts if isinstance(one, Receipt))
        for lane, group in groupby(ours, key=lambda one: one.lane):
            for batch in cut([one.handle for one in group], REQUEST_MESSAGES):
                await self._delete(lane, batch)

    async def count(self, lane: str) -> int:
        try:
            sizes = await self._attributes(lane, _SIZES)
        except QueueGone:
            return 0
        return sum(int(sizes.get(name, 0)) for name in _SIZES)

    async def drop(self, lane: str) -> None:
        try:
            await self._of_queue("delete_queue", lane)
        except QueueGone:
            return

    async def close(self) -> None:
        await self._link.close()

    def queue_name(self, lane: str) -> str:
        """The name of a lane's queue: the prefix, as much of the lane's name as SQS allows, and a
        digest that makes it unique."""
        digest = hashlib.sha256(lane.encode()).hexdigest()[:16]
        readable = _OTHERS.sub("-", lane.removeprefix("shoal."))
        room = MAX_NAME - len(self._prefix) - len(digest) - 2
        return f"{self._prefix}-{readable[:room]}-{digest}"

    async def _check(self, lane: str, name: str) -> None:
        """Make the queue keep messages as long as possible, even if somebody else has created it.
        Raises ConfigError if that is not permitted."""
        kept = "MessageRetentionPeriod"
        if int((await self._attributes(lane, [kept])).get(kept, 0)) >= KEPT_S:
            return
        try:
            await self._of_queue("set_queue_attributes", lane, Attributes={kept: str(KEPT_S)})
        except ConfigError as error:
            raise ConfigError(f"{error}: set {kept} of {name} to {KEPT_S}, two weeks") from None

    async def _attributes(self, lane: str, names: Sequence[str]) -> dict[str, str]:
        asked = await self._of_queue("get_queue_attributes", lane, AttributeNames=list(names))
        answer: dict[str, str] = asked.get("Attributes", {})
        return answer

    async def _send(self, lane: str, entries: Sequence[Any]) -> None:
        try:
            answer = await self._of_queue("send_message_batch", lane, Entries=entries)
        except QueueGone:
            await self.declare(lane)
            answer = await self._of_queue("send_message_batch", lane, Entries=entries)
        self._link.requests += more_billed(len(one["MessageBody"]) for one in entries)
        if failed := answer.get("Failed"):
            kind = StorageFailed if failed[0].get("SenderFault") else StorageBusy
            raise kind(f"{self._link.shown}: {failed[0].get('Code')}: {failed[0].get('Message')}")

    async def _receive(self, lane: str, limit: int) -> list[tuple[bytes, Receipt]]:
        try:
            answer = await self._of_queue(
                "receive_message",
                lane,
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=POLL_S,
                VisibilityTimeout=self._held_s,
            )
        except QueueGone:
            return []
        messages = answer.get("Messages", [])
        self._link.requests += more_billed(len(one["Body"]) for one in messages)
        return [(bytes_of(one["Body"]), Receipt(lane, one["ReceiptHandle"])) for one in messages]

    async def _delete(self, lane: str, handles: Sequence[str]) -> None:
        entries = [{"Id": str(at), "ReceiptHandle": one} for at, one in enumerate(handles)]
        try:
            # Handles that fail have expired: their messages are delivered again.
            await self._of_queue("delete_message_batch", lane, Entries=entries)
        except QueueGone:
            return

    async def _of_queue(self, operation: str, lane: str, **params: Any) -> Any:
        """Call an operation on a lane's queue. Raises QueueGone."""
        if lane not in self._urls:
            self._urls[lane] = await self._link.url_of(self.queue_name(lane))
        try:
            return await self._link.call(operation, QueueUrl=self._urls[lane], **params)
        except QueueGone:
            self._urls.pop(lane, None)
            raise
