"""Where a list goes on, as a word that means nothing to who gets it."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from math import isfinite
from typing import NamedTuple

from shoal.web.problems import Problem

_VERSION = b"1"
_PLACE = struct.Struct(">d8s")


class Place(NamedTuple):
    """A place in a list that is in the order of moments: then, and what tells apart what happened
    at one of them."""

    at: float
    key: bytes


def cursor_after(place: bytes) -> str:
    """The cursor of what comes after a place."""
    return urlsafe_b64encode(_VERSION + place).decode().rstrip("=")


def place_of(cursor: str | None) -> bytes | None:
    """The place that a cursor stands for. Raises Problem."""
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
    """The cursor of what comes after a place in the order of moments."""
    return cursor_after(_PLACE.pack(*place))


def place_at(cursor: str | None) -> Place | None:
    """The place that such a cursor stands for. Raises Problem."""
    packed = place_of(cursor)
    if packed is None:
        return None
    if len(packed) != _PLACE.size or not isfinite(_PLACE.unpack(packed)[0]):
        raise bad_cursor()
    return Place(*_PLACE.unpack(packed))


def bad_cursor() -> Problem:
    """What is wrong with a cursor that nobody has given out here."""
    return Problem(400, "cursor: not one that was given out here")
