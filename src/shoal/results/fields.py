"""The fields of stored items: read from JSON, and written as text for exports and merges."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

PROGRESS_EVERY = 1_000


Progress = Callable[[str, int], object]
"""Told what is being done (`read`, `written`), and of how many items that was done so far."""


Fields = dict[str, msgspec.Raw]


# Values stay JSON text: nothing is rounded, however large a number is.
fields_of: Callable[[bytes], Fields] = msgspec.json.Decoder(Fields).decode


def iso(seconds: float) -> str:
    """A moment in ISO 8601, UTC, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(value: bytes) -> str:
    """A JSON value as text: strings as they are, everything else as JSON."""
    return msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()
