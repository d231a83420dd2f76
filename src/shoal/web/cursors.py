"""Encodes places in lists as opaque cursors, with which clients ask for the next page."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from math import isfinite
from typing import NamedTuple

from shoal.web.problems import Problem

_VERSION = b"1"
_PLACE = struct.Struct(">d8s")


class Place(NamedTuple):
    """A place in a list ordered by time: the time, and a key that orders entries of equal time."""

    at: float
    key: bytes


def cursor_after(place: bytes) -> str:
    """The cursor of the page that begins after a place."""
    return urlsafe_b64encode(_VERSION + place).decode().rstrip("=")


def place_of(cursor: str | None) -> bytes | None:
    """The place that a cursor encodes; None without one. Raises Problem if it is not valid."""
    if cursor is None:
        return None
    try:
        place = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        place = b""
    if not place.startswith(_VERSION):
        raise bad_cursor()
    return place[1:]


def cursor_at(place: tuple[float, bytes]) -> str:
    """The cursor of the page that begins after a place in a list ordered by time."""
    return cursor_after(_PLACE.pack(*place))


def place_at(cursor: str | None) -> Place | None:
    """The place that a cursor of `cursor_at` encodes. Raises Problem if it is not valid."""
    packed = place_of(cursor)
    if packed is None:
        return None
    if len(packed) != _PLACE.size or not isfinite(_PLACE.unpack(packed)[0]):
        raise bad_cursor()
    return Place(*_PLACE.unpack(packed))


def bad_cursor() -> Problem:
    """The problem of a cursor that this server cannot have issued."""
    return Problem(400, "cursor: not one that was given out here")
