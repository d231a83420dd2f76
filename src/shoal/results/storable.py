"""Common to all stores: text that cannot be kept as it is, what is the same, and what is not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from shoal.core.records import RejectedItem, StoredItem
from shoal.results.port import Batch

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


def once_each(items: Iterable[StoredItem]) -> list[StoredItem]:
    """Of readings of one item at the same moment the last one: a statement writes a row once."""
    return list({(i.kind, i.key, i.scraped_at): i for i in items}.values())


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
