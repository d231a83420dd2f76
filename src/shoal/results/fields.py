"""Reads the fields of stored items from JSON, and writes them as text for exports and merges."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

PROGRESS_EVERY = 1_000


Progress = Callable[[str, int], object]
"""Called with the current step (`read`, `written`) and the number of items done so far."""


Fields = dict[str, msgspec.Raw]


# Values stay JSON text, so that no number is rounded.
fields_of: Callable[[bytes], Fields] = msgspec.json.Decoder(Fields).decode


def iso(seconds: float) -> str:
    """A time in ISO 8601, UTC, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(value: bytes) -> str:
    """A JSON value as text: strings as they are, everything else as JSON."""
    return msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()
