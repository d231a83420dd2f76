"""Blocks as messages of SQS, which are text, and these in as few requests as SQS allows."""

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
"""So much of what is sent or received is billed as one request."""

_ATTRIBUTES_BYTES = 100
T = TypeVar("T")


def batches(blocks: Iterable[Block]) -> Iterator[list[dict[str, Any]]]:
    """The entries of each request that is needed to send these blocks."""
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
    """The bytes that a message stands for; none if it stands for none."""
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return b""


def more_billed(sizes: Iterable[int]) -> int:
    """How many requests more than one are billed for messages of these sizes."""
    return max(sum(sizes) - 1, 0) // BILLED_BYTES


def cut(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Parts of at most this size."""
    for start in range(0, len(things), size):
        yield things[start : start + size]
