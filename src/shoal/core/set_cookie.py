"""Parses `Set-Cookie` headers as RFC 6265 (section 5.2) and browsers do: odd parts are ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from multidict import MultiMapping

HEADER = "Set-Cookie"
MAX_COOKIE_BYTES = 4096
"""The most bytes of a name and its value together. Longer cookies are not kept."""

MAX_ATTRIBUTE_BYTES = 1024
"""Longer attributes are ignored."""

FOREVER_S = 10**10
"""A longer Max-Age is treated as this one."""

LONG_AGO = 0.0
"""The expiry of a cookie that is to be deleted."""

_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BLANKS = " \t"
_MAX_AGE = re.compile(r"-?[0-9]+")

_DELIMITERS = re.compile(r"[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[^0-9].*)?", re.DOTALL)
_DAY = re.compile(r"([0-9]{1,2})(?:[^0-9].*)?", re.DOTALL)
_YEAR = re.compile(r"([0-9]{2,4})(?:[^0-9].*)?", re.DOTALL)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIRST_YEAR = 1601


def lines_in(headers: Mapping[str, str]) -> Sequence[str]:
    """All Set-Cookie lines of a response, in order."""
    if isinstance(headers, MultiMapping):
        lines: Sequence[str] = headers.getall(HEADER, [])
        return lines
    return [headers[HEADER]] if HEADER in headers else []


class SetCookie(msgspec.Struct):
    """One Set-Cookie line, parsed but not yet checked against the address that it came from."""

    name: str
    value: str
    domain: str = ""
    """In lower case, without a leading dot. Empty: only the host that sent it gets the cookie."""
    path: str = ""
    """Empty: it is derived from the address."""
    secure: bool = False
    http_only: bool = False
    expires: float | None = None
    """None: it ends with the session."""

    def __repr__(self) -> str:
        return f"SetCookie({self.name!r})"


def read(line: str, now: float) -> SetCookie | None:
    """Parse one Set-Cookie line.

    Returns None if it sets nothing: it has no name, is too long, has control characters, or has
    bytes that are no text.
    """
    pair, _, rest = line.partition(";")
    name, equals, value = (part.strip(_BLANKS) for part in pair.partition("="))
    if not equals or not name or _CONTROLS.search(line):
        return None
    if not _is_kept(name, value):
        return None
    cookie = SetCookie(name, value)
    max_age: float | None = None
    for attribute in rest.split(";"):
        key, _, text = attribute.partition("=")
        key, text = key.strip(_BLANKS).lower(), text.strip(_BLANKS)
        if len(text) > MAX_ATTRIBUTE_BYTES:
            continue
        if key == "max-age":
            max_age = _after(text, now) if _MAX_AGE.fullmatch(text) else max_age
        else:
            _note(cookie, key, text)
    if max_age is not None:  # It wins over Expires, whatever their order.
        cookie.expires = max_age
    return cookie


def _is_kept(name: str, value: str) -> bool:
    try:
        return len(name.encode()) + len(value.encode()) <= MAX_COOKIE_BYTES
    except UnicodeEncodeError:
        return False  # Bytes that are not UTF-8: they could not be sent back.


def _note(cookie: SetCookie, key: str, text: str) -> None:
    """Apply one attribute. If it occurs twice, the last one counts. Others, such as SameSite, mean
    nothing to a client that has no pages open."""
    if key == "domain":
        cookie.domain = text.removeprefix(".").lower()
    elif key == "path":
        cookie.path = text if text.startswith("/") else ""
    elif key == "secure":
        cookie.secure = True
    elif key == "httponly":
        cookie.http_only = True
    elif key == "expires":
        expires = date(text)
        cookie.expires = cookie.expires if expires is None else expires


def _after(max_age: str, now: float) -> float:
    seconds = min(int(max_age), FOREVER_S)
    return now + seconds if seconds > 0 else LONG_AGO


def date(text: str) -> float | None:
    """Parse a date in any of the forms that servers send (RFC 6265, 5.1.1). None if it is none."""
    time = day = month = year = None
    for token in _DELIMITERS.split(text):
        if time is None and (found := _TIME.fullmatch(token)):
            time = [int(part) for part in found.groups()]
        elif day is None and (found := _DAY.fullmatch(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.fullmatch(token)):
            year = _whole_year(int(found[1]))
    if time is None or day is None or month is None or year is None or year < _FIRST_YEAR:
        return None
    try:
        hour, minute, second = time
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _whole_year(year: int) -> int:
    if 70 <= year <= 99:
        return year + 1900
    return year + 2000 if year <= 69 else year
