"""Publishes to queues of SQS: `queue` of `sqs://region/queue`, which must exist, and `queue-dead`
and `queue-finished`, which are created. Needs the extra `sqs`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

from shoal.drivers.sqs import QueueGone, SqsLink, sqs_address
from shoal.errors import ConfigError, StorageBusy, StorageFailed, unreachable
from shoal.publish.formats import enveloped, is_celery
from shoal.publish.port import Channel, Message, Publisher, larger_than

MOST_BYTES = 256 * 1024
"""The maximum size of a message with its attributes, and of all messages in one request."""
MOST_ENTRIES = 10
REQUESTS_AT_ONCE = 8
_KEPT_S = 14 * 24 * 3600
_REFUSED = re.compile("[\ufffe\uffff]")
"""Characters that JSON allows in a string and SQS does not."""


class SqsPublisher(Publisher):
    """Publishes to queues of SQS, which do not keep the order of messages."""

    def __init__(self, address: str) -> None:
        where = sqs_address(address)
        self.shown = where.shown
        queue = where.segments[0]
        if queue.endswith(".fifo"):
            raise ConfigError(f"{self.shown}: a FIFO queue is too slow for items; name another one")
        self._link = SqsLink(where)
        self._names = {channel: f"{queue}-{channel}" for channel in Channel}
        self._names[Channel.ITEMS] = queue
        self._urls: dict[Channel, str] = {}

    async def check(self, *, makes: bool = True) -> None:
        try:
            for channel in Channel if makes else (Channel.ITEMS,):
                await self._url(channel)
        except StorageBusy as error:
            raise unreachable(error) from None

    def too_large(self, message: Message) -> str:
        return larger_than(MOST_BYTES, _size(self._entry(message)))

    async def publish(self, messages: Sequence[Message]) -> None:
        requests = list[tuple[Channel, list[dict[str, Any]]]]()
        for channel in Channel:
            entries = [self._entry(one) for one in messages if one.channel is channel]
            requests += [(channel, some) for some in _parts(entries)]
        for start in range(0, len(requests), REQUESTS_AT_ONCE):
            sending = (self._send(*one) for one in requests[start : start + REQUESTS_AT_ONCE])
            # Wait for all, so that none is still being sent when the batch is tried again.
            for error in await asyncio.gather(*sending, return_exceptions=True):
                if error is not None:
                    raise error

    async def close(self) -> None:
        await self._link.close()

    async def _send(self, channel: Channel, entries: list[dict[str, Any]]) -> None:
        numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
        url = await self._url(channel)
        try:
            answer = await self._link.call("send_message_batch", QueueUrl=url, Entries=numbered)
        # Somebody has deleted the queue. The next try finds or creates it, or raises ConfigError.
        except QueueGone:
            self._urls.pop(channel, None)
            raise StorageBusy(f"{self.shown}: {self._names[channel]} is gone") from None
        for failed in answer.get("Failed", []):
            said = f"{self.shown}: {failed.get('Code')}: {failed.get('Message', '')}"
            raise (StorageFailed if failed.get("SenderFault") else StorageBusy)(said)

    async def _url(self, channel: Channel) -> str:
        if channel not in self._urls:
            self._urls[channel] = await self._find(channel)
        return self._urls[channel]

    async def _find(self, channel: Channel) -> str:
        name = self._names[channel]
        try:
            return await self._link.url_of(name)
        except QueueGone as error:
            if channel is Channel.ITEMS:
                raise ConfigError(f"{error}: make it first, as those who read do") from None
            kept = {"MessageRetentionPeriod": str(_KEPT_S)}
            made = await self._link.call("create_queue", QueueName=name, Attributes=kept)
            return str(made["QueueUrl"])

    def _entry(self, message: Message) -> dict[str, Any]:
        """The entry for a message. Messenger reads headers from attributes, Celery from the
        body."""
        wire, headers = message.wire, {"message_id": message.id}
        if is_celery(wire):
            body = enveloped(message, self._names[message.channel])
        else:
            body, headers = wire.body, {**wire.headers, **headers}
        return {
            "MessageBody": _REFUSED.sub(_escaped, body.decode()),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value}
                for name, value in headers.items()
            },
        }


def _escaped(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


def _size(entry: dict[str, Any]) -> int:
    attributes: dict[str, dict[str, str]] = entry["MessageAttributes"]
    beside = sum(len(name) + sum(map(len, value.values())) for name, value in attributes.items())
    return len(entry["MessageBody"].encode()) + beside


def _parts(entries: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split entries into requests within the limits of number and size."""
    part, size = list[dict[str, Any]](), 0
    for entry in entries:
        its_size = _size(entry)
        if part and (len(part) == MOST_ENTRIES or size + its_size > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(entry)
        size += its_size
    if part:
        yield part
