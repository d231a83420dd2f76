"""The fields of items, as the stores keep them: JSON text."""

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
    """A moment as people and programs read it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(value: bytes) -> str:
    """Text as it is, everything else as JSON."""
    return msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()
