"""Checks that the values in a stream entry are in the ranges that every store accepts.

Anybody can write to the stream, and an entry that no store accepts would stop one deliverer after
the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, NoReturn

import msgspec
from msgspec import Meta

from shoal.config import History
from shoal.core.policy import MAX_DURATION_S
from shoal.core.records import StoredItem
from shoal.core.urls import FINGERPRINT_BYTES

LAST_MOMENT = 253_402_300_799
"""The last second of the year 9999."""

Fingerprint = Annotated[bytes, Meta(min_length=FINGERPRINT_BYTES, max_length=FINGERPRINT_BYTES)]
# These bounds also exclude NaN and infinity.
Seconds = Annotated[float, Meta(ge=0, le=LAST_MOMENT)]
Patience = Annotated[float, Meta(ge=0, le=MAX_DURATION_S)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
LongCount = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Status = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Simhash = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


# The records of the port, reduced to the fields whose values have bounds.


class _Item(msgspec.Struct):
    fingerprint: Fingerprint
    scraped_at: Seconds


class _Page(msgspec.Struct):
    fingerprint: Fingerprint
    attempt: Count
    started_at: Seconds
    duration_s: Seconds
    status: Status | None = None
    body_bytes: LongCount = 0
    items: Count = 0
    links: Count = 0
    simhash: Simhash | None = None


class _File(msgspec.Struct):
    fingerprint: Fingerprint
    at: Seconds
    size: LongCount = 0


class _Keep(msgspec.Struct, frozen=True):
    history: History = "changed"
    refresh_s: Patience = 0.0


class _Batch(msgspec.Struct):
    pages: list[_Page] = []
    items: list[_Item] = []
    rejected: list[_Item] = []
    keep: _Keep = _Keep()
    files: list[_File] = []


check_values = msgspec.msgpack.Decoder(_Batch).decode
"""Checks an encoded batch. Raises msgspec.ValidationError."""

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def check_data(items: Iterable[StoredItem]) -> None:
    """Check that the data of each item is a JSON object on one line.

    Raises msgspec.ValidationError, UnicodeDecodeError or RecursionError.
    """
    for item in items:
        text = item.data.decode()
        if "\n" in text or "\r" in text:
            raise msgspec.ValidationError("the data of an item has line breaks")
        try:
            _decode_fields(text)
        except msgspec.DecodeError as error:
            if not _is_object(text):
                raise msgspec.ValidationError(f"the data of an item: {error}") from None


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object. Slower than msgspec, but accepts escaped lone surrogates,
    which items may have."""
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_json)
    except ValueError:
        return False
    return isinstance(found, dict)


def _no_json(constant: str) -> NoReturn:
    raise ValueError(constant)
