"""Common to all stores: text that cannot be kept as it is, and what tells rejections apart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from shoal.results.port import Batch, RejectedItem

S = TypeVar("S", bound=msgspec.Struct)


def valid(batch: Batch) -> Batch:
    """The batch with lone surrogates, which no encoding can hold, written out as \\udXXX."""
    return rewritten(batch, _valid_text)


def rewritten(batch: Batch, change: Callable[[str], str]) -> Batch:
    """A copy of the batch with each text in it changed."""
    return Batch(
        pages=[_rewritten(page, change) for page in batch.pages],
        items=[_rewritten(item, change) for item in batch.items],
        rejected=[_rewritten(item, change) for item in batch.rejected],
        keep=batch.keep,
    )


def rejection_digest(item: RejectedItem) -> bytes:
    """Stands for what a rejected item says and why it was rejected."""
    content = "\0".join((item.kind, item.reason, item.data))
    return hashlib.blake2b(content.encode(), digest_size=8).digest()


def _rewritten(record: S, change: Callable[[str], str]) -> S:
    texts = {
        name: change(value)
        for name, value in msgspec.structs.asdict(record).items()
        if isinstance(value, str)
    }
    return msgspec.structs.replace(record, **texts)


def _valid_text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
