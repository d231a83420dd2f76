"""The shape of an address: what is left of it without its numbers, ids and values.

Endless calendars, ids in paths and filters in queries produce ever new addresses of a few shapes:
`/calendar/N/N`, `/item/ID`, `/list?color&size`. Pages choose the addresses, so all functions here
take time linear in their length.
"""

from __future__ import annotations

import re

import msgspec

from shoal.core.url_patterns import path_at

MAX_SHAPE = 200
"""The longest shape, in characters. Addresses that differ only beyond it have the same shape."""
MAX_REPEATS = 8
"""How often the same segments may follow one another in a path. No sane site has more."""

FEW_SLASHES = MAX_REPEATS + 2
"""An address with at most this many slashes cannot repeat anything too often."""
_READ = 1_000
"""How many characters of a path, and of a query, count for the shape."""
_HEX = "[0-9a-fA-F]"
_ID = re.compile(
    rf"(?<![0-9a-zA-Z])(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
    rf"|(?=[0-9]*+[a-fA-F])(?=[a-fA-F]*+[0-9]){_HEX}{{12,}}+)(?![0-9a-zA-Z])"
)
"""A UUID, or a long hexadecimal number with letters in it."""
_NUMBER = re.compile(r"[0-9]++(?:[-_.:][0-9]++)*+")
"""A number, a date, a version."""
_SEGMENTS = r"((?:/[^/?]++){1,4}?)"
_REPEATED = re.compile(rf"{_SEGMENTS}(?:\1(?![^/?])){{3,}}+")
"""The same segments four times in a row: a date has only three numbers."""
_TOO_OFTEN = re.compile(rf"{_SEGMENTS}(?:\1(?![^/?])){{{MAX_REPEATS},}}+")


class Trap(msgspec.Struct, frozen=True):
    """What a limit of a crawl kept out: pages of a host whose addresses have the same shape."""

    host: str
    shape: str
    """Empty: all pages of the host."""
    kept_out: int
    """Links that were not followed. A link counts each time it is found."""


def shape_of(url: str) -> str:
    """The shape of an address, which is given in its normal form."""
    path, _, query = url[path_at(url) :].partition("?")
    shape = path[:_READ]
    if query:
        names = [pair.partition("=")[0] for pair in query[:_READ].split("&")]
        shape = f"{shape}?{'&'.join(dict.fromkeys(names))}"
    shape = _NUMBER.sub("N", _ID.sub("ID", shape))
    if shape.count("/") > 3:
        shape = _REPEATED.sub(r"\1", shape)
    return shape[:MAX_SHAPE]


def repeated_segments(url: str) -> str | None:
    """The segments that follow one another too often in the path of an address, or None.

    A site that treats absolute links as relative leads to /a/b/a/b/a/b and so on.
    """
    found = _TOO_OFTEN.search(url[path_at(url) :].partition("?")[0])
    return found[1] if found else None


def kept_out_reason(host: str, shape: str, most: int | None) -> str:
    """Why links are not followed, for people. `most` is None if the limit was removed meanwhile."""
    alike = f"like {shape} of {host}" if shape else f"of {host}"
    return f"too many pages {alike}" if most is None else f"more than {most:,} pages {alike}"
