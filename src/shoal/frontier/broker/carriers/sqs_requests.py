"""Converts blocks to messages of SQS, which are text, and groups these into few requests."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from shoal.frontier.broker.carrier import Block
from shoal.frontier.broker.encoding import encode

REQUEST_BYTES = 250_000
REQUEST_MESSAGES = 10
BILLED_BYTES = 64 * 1024
"""Each started 64 KiB that are sent or received are billed as one request."""

_ATTRIBUTES_BYTES = 100
T = TypeVar("T")


def batches(blocks: Iterable[Block]) -> Iterator[list[dict[str, Any]]]:
    """The entries of each request that sends these blocks, within the limits of SQS."""
    batch, size = list[dict[str, Any]](), 0
    for block in blocks:
        body = base64.b64encode(encode(block)).decode()
        more = len(body) + _ATTRIBUTES_BYTES
        if batch and (size + more > REQUEST_BYTES or len(batch) == REQUEST_MESSAGES):
            yield batch
            batch, size = [], 0
        tasks = {"DataType": "Number", "StringValue": str(len(block.entries))}
        entry = {"MessageBody": body, "MessageAttributes": {"tasks": tasks}}
        batch.append({"Id": str(len(batch)), **entry})
        size += more
    if batch:
        yield batch


def bytes_of(body: str) -> bytes:
    """Decode the base64 text of a message. Empty if it is not base64."""
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return b""


def more_billed(sizes: Iterable[int]) -> int:
    """How many requests are billed, beyond the first, for messages of these sizes."""
    return max(sum(sizes) - 1, 0) // BILLED_BYTES


def cut(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into parts of at most this size."""
    for start in range(0, len(things), size):
        yield things[start : start + size]
