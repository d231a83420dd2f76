"""Encodes and decodes the entries of the stream: batches and run notes, as MessagePack.

An entry has the fields `crawl` and `batch`, or `crawl` and `note`. Anything else is rejected.
"""

from __future__ import annotations

import time

import msgspec

from shoal.errors import ShoalError, StorageFailed
from shoal.results.port import Batch, RunNote
from shoal.results.storable import valid
from shoal.results.stream.ranges import check_data, check_values

ENTRY_BYTES = 4 * 1024 * 1024
"""A larger batch is split into several entries, so that no process has to hold much at once."""
SHOWN_CHARACTERS = 2000
"""How much is kept of an entry that no worker had written."""

_encode = msgspec.msgpack.Encoder().encode
_decode_batch = msgspec.msgpack.Decoder(Batch).decode
_FOREIGN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of decoding an entry that no worker had written."""

_RECORDS = ("pages", "items", "rejected", "files")

RawEntry = tuple[bytes, list[bytes]]
"""An entry as Redis returns it: the id, then field names and values in turn."""

encode_note = msgspec.msgpack.Encoder().encode
decode_note = msgspec.msgpack.Decoder(RunNote).decode


class ForeignEntry(ShoalError):
    """Raised for an entry that no worker had written."""


class StreamEntry(msgspec.Struct):
    """A batch or a run note that a worker has added to the stream."""

    id: bytes
    crawl: str
    content: Batch | RunNote


class Garbage(msgspec.Struct):
    """The record that is kept of an entry that no worker had written."""

    id: str
    entry: str
    reason: str
    at: float


def encode(batch: Batch) -> list[bytes]:
    """Encode a batch as one entry, or as several if it is large.

    Raises StorageFailed if the entry could not be decoded again: the worker has to learn of it
    while it still has the batch.
    """
    try:
        encoded = _encode(batch)
    except UnicodeEncodeError:
        return encode(valid(batch))
    if len(encoded) > ENTRY_BYTES and _size(batch) > 1:
        first, second = _halves(batch)
        return encode(first) + encode(second)
    try:
        _decode(encoded)
    except _FOREIGN as error:
        raise StorageFailed(f"not a batch of results: {error}") from None
    return [encoded]


def read(raw: RawEntry) -> StreamEntry:
    """Decode an entry. Raises ForeignEntry if no worker had written it."""
    identity, flat = raw
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    try:
        crawl = fields[b"crawl"].decode()
        if b"note" in fields:
            return StreamEntry(identity, crawl, decode_note(fields[b"note"]))
        return StreamEntry(identity, crawl, _decode(fields[b"batch"]))
    except KeyError as error:
        raise ForeignEntry(f"it has no field '{error.args[0].decode()}'") from None
    except _FOREIGN as error:
        raise ForeignEntry(str(error)) from None


def garbage(raw: RawEntry, reason: str) -> Garbage:
    """Make the record to keep of an entry that no worker had written."""
    identity, flat = raw
    text = b" ".join(value[: 4 * SHOWN_CHARACTERS] for value in flat[:8])
    shown = text.decode("utf-8", "replace")[:SHOWN_CHARACTERS]
    return Garbage(identity.decode(), shown, reason, time.time())


def _decode(encoded: bytes) -> Batch:
    """Decode a batch and check that every store accepts it. Raises one of `_FOREIGN`."""
    batch = _decode_batch(encoded)
    check_values(encoded)
    check_data(batch.items)
    return batch


def _size(batch: Batch) -> int:
    return sum(len(getattr(batch, name)) for name in _RECORDS)


def _halves(batch: Batch) -> tuple[Batch, Batch]:
    """Split a batch into two with half of the records each."""
    cut = _size(batch) // 2
    first, second = Batch(keep=batch.keep), Batch(keep=batch.keep)
    for name in _RECORDS:
        records = getattr(batch, name)
        setattr(first, name, records[:cut])
        setattr(second, name, records[cut:])
        cut = max(cut - len(records), 0)
    return first, second
