"""The shape of an address: what is left of it without its numbers, ids and values.

Endless calendars, ids in paths and filters in queries are ever new addresses of a few shapes:
`/calendar/N/N`, `/item/ID`, `/list?color&size`. Pages choose addresses: what is done here takes a
time that grows with their length and no more.
"""

from __future__ import annotations

import re

import msgspec

from shoal.core.url_patterns import path_at

MAX_SHAPE = 200
"""Characters of a shape. Addresses that differ only behind them have the same."""
MAX_REPEATS = 8
"""How often the same segments may follow one another in a path. No site that is well has more."""

FEW_SLASHES = MAX_REPEATS + 2
"""An address that has no more repeats nothing too often."""
_READ = 1_000
"""Characters of a path, and of a query, that are looked at for a shape."""
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
"""The same segments four times: a date has three numbers."""
_TOO_OFTEN = re.compile(rf"{_SEGMENTS}(?:\1(?![^/?])){{{MAX_REPEATS},}}+")


class Trap(msgspec.Struct, frozen=True):
    """What a limit of a crawl has kept out: pages of a host whose addresses have the same shape."""

    host: str
    shape: str
    """Empty: all pages of the host."""
    kept_out: int
    """Links that were not followed, each time one was found."""


def shape_of(url: str) -> str:
    """The shape of an address, given in its normal spelling."""
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
    """The segments that follow one another too often in the path of an address, if there are any:
    a site that takes links for relative ones which are not leads to /a/b/a/b/a/b, and so on."""
    found = _TOO_OFTEN.search(url[path_at(url) :].partition("?")[0])
    return found[1] if found else None


def kept_out_reason(host: str, shape: str, most: int | None) -> str:
    """Why links are not followed, as people read it. None: the limit was taken away since."""
    alike = f"like {shape} of {host}" if shape else f"of {host}"
    return f"too many pages {alike}" if most is None else f"more than {most:,} pages {alike}"
