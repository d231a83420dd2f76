"""Takes messages from a queue of SQS. Needs the extra `sqs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.drivers.sqs import LONGEST_POLL_S, QueueGone, SqsLink, sqs_address
from shoal.errors import ConfigError
from shoal.feeds.formats import Wire
from shoal.feeds.port import Message, Rejected, Source, printable

HELD_S = 120
"""How long a taken message is invisible to others: longer than it takes to add its tasks. If the
frontier is away for longer, messages are delivered again, and their tasks are duplicates."""
AT_ONCE = 10
_SIZES = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
_KEPT_S = 14 * 24 * 3600
KEPT_CHARACTERS = 50_000
"""How many characters of a rejected message are kept. A message as large as SQS allows would leave
no room for the reason."""


class SqsSource(Source):
    """The queue at `sqs://region/queue`, which must exist."""

    def __init__(self, address: str) -> None:
        where = sqs_address(address)
        self.shown = where.shown
        self._queue = where.segments[0]
        self._link = SqsLink(where)
        self._urls: dict[str, str] = {}

    async def take(self, limit: int, wait_s: float) -> list[Message]:
        taken = list[Message]()
        while len(taken) < limit:
            answer = await self._call(
                "receive_message",
                self._queue,
                MaxNumberOfMessages=min(limit - len(taken), AT_ONCE),
                WaitTimeSeconds=0 if taken else min(round(wait_s), LONGEST_POLL_S),
                VisibilityTimeout=HELD_S,
                MessageAttributeNames=["All"],
            )
            found = answer.get("Messages", [])
            taken += map(_message, found)
            if len(found) < AT_ONCE:
                break
        return taken

    async def done(self, messages: Sequence[Message]) -> None:
        for start in range(0, len(messages), AT_ONCE):
            some = messages[start : start + AT_ONCE]
            entries = [{"Id": str(i), "ReceiptHandle": m.receipt} for i, m in enumerate(some)]
            # Handles that fail have expired: their messages are delivered again, as duplicates.
            await self._call("delete_message_batch", self._queue, Entries=entries)

    async def reject(self, rejected: Sequence[Rejected]) -> None:
        for one in rejected:
            await self._put_aside(one)
        await self.done([one.message for one in rejected])

    async def _put_aside(self, rejected: Rejected) -> None:
        aside = f"{self._queue}-rejected"
        why = {"DataType": "String", "StringValue": printable(rejected.reason)}
        body = rejected.message.wire.body.decode()[:KEPT_CHARACTERS]
        sent = {"MessageBody": body, "MessageAttributes": {"shoal-reason": why}}
        try:
            await self._call("send_message", aside, **sent)
        except QueueGone:
            kept = {"MessageRetentionPeriod": str(_KEPT_S)}
            await self._link.call("create_queue", QueueName=aside, Attributes=kept)
            await self._call("send_message", aside, **sent)

    async def waiting(self) -> int:
        answer = await self._call("get_queue_attributes", self._queue, AttributeNames=list(_SIZES))
        return sum(int(answer.get("Attributes", {}).get(name, 0)) for name in _SIZES)

    async def close(self) -> None:
        await self._link.close()

    async def _call(self, operation: str, queue: str, **params: Any) -> Any:
        try:
            if queue not in self._urls:
                self._urls[queue] = await self._link.url_of(queue)
            return await self._link.call(operation, QueueUrl=self._urls[queue], **params)
        except QueueGone as error:
            self._urls.pop(queue, None)
            if queue != self._queue:
                raise
            raise ConfigError(f"{error}: make it first, as those who publish do") from None


def _message(found: dict[str, Any]) -> Message:
    attributes = found.get("MessageAttributes", {})
    headers = {name: value.get("StringValue") for name, value in attributes.items()}
    wire = Wire(found["Body"].encode("utf-8", "replace"), headers)
    return Message(wire, found["ReceiptHandle"], found["MessageId"])
