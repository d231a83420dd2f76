"""Patterns of addresses, written as in robots.txt: `/product/`, `/*?sort=`, `*.pdf$`.

A pattern is compared with the beginning of an address: `*` matches any text, `$` at the end of the
pattern the end of the address. Patterns are no regular expressions, because pages choose the
addresses: matching takes time linear in their length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

import msgspec

from shoal.core import urls
from shoal.errors import BadUrl

MAX_LENGTH = 1_000
_SCHEMES = ("http://", "https://")
_OF_REGEX = ("\\", "(?", "[^", "[0-9", "[a-z", ".+", "/.*", "|")
"""Signs of regular expressions that addresses hardly ever contain."""
_UNCHANGED = "".join(map(chr, range(33, 127)))


class UrlPattern(msgspec.Struct, frozen=True):
    """A parsed pattern."""

    pieces: tuple[str, ...]
    """The texts between its `*`."""
    is_whole: bool = False
    """Whether it is compared with the whole address, rather than from the path on."""
    ends: bool = False

    def matches(self, url: str) -> bool:
        """Whether an absolute address matches."""
        first, *others = self.pieces
        at = 0 if self.is_whole else path_at(url)
        if not url.startswith(first, at):
            return False
        at += len(first)
        if not self.ends:
            return _end_of(others, url, at) is not None
        if not others:
            return at == len(url)
        last = others.pop()
        found = _end_of(others, url, at)
        return found is not None and found + len(last) <= len(url) and url.endswith(last)


def _end_of(pieces: Iterable[str], url: str, at: int) -> int | None:
    """Where the last of the pieces ends if they occur in this order; None if they do not. Taking
    the first occurrence of each is enough."""
    for piece in pieces:
        found = url.find(piece, at)
        if found < 0:
            return None
        at = found + len(piece)
    return at


def path_at(url: str) -> int:
    """The index at which the path of an absolute http(s) address begins."""
    found = url.find("/", len("https://"))
    return len(url) if found < 0 else found


def read_patterns(name: str, patterns: str | Iterable[str]) -> tuple[UrlPattern, ...]:
    """Parse one pattern or several. Raises ValueError, which says what to write.

    `name` is what the user calls the patterns.
    """
    if isinstance(patterns, str):
        patterns = (patterns,)
    if not isinstance(patterns, Iterable) or isinstance(patterns, bytes):
        raise ValueError(f"{name}={patterns!r:.80}: {_wanted(patterns)}")
    return tuple(_read(name, pattern) for pattern in patterns)


def _read(name: str, pattern: str) -> UrlPattern:
    try:
        if not isinstance(pattern, str):
            raise ValueError(_wanted(pattern))
        return _pattern(pattern)
    except ValueError as error:
        raise ValueError(f"{name}={pattern!r:.80}: {error}") from None


def _wanted(given: object) -> str:
    if isinstance(given, re.Pattern):
        return f"no regular expression; {_HOW}"
    return f"a text, or a list of texts; {_HOW}"


_HOW = "write it as in robots.txt: '/product/', '/*?sort=', '*.pdf$'"


@lru_cache(maxsize=1024)
def _pattern(text: str) -> UrlPattern:
    if flaw := _flaw(text):
        raise ValueError(flaw)
    ends = text.endswith("$")
    bare = text[:-1] if ends else text
    is_whole = bare.startswith(_SCHEMES)
    if is_whole:
        bare = _with_host(bare)
    # Patterns are compared with addresses as they are sent.
    return UrlPattern(tuple(quote(bare, safe=_UNCHANGED).split("*")), is_whole, ends)


def _flaw(text: str) -> str | None:
    if len(text) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH:,} characters"
    if text.startswith(("^", ".*")) or any(sign in text for sign in _OF_REGEX):
        return f"it looks like a regular expression; {_HOW}"
    if "#" in text:
        return "what comes after # is not part of an address here"
    if not text.startswith(("/", "*", *_SCHEMES)):
        bare = text.strip()
        return f"it begins with neither / nor * nor https://: write '/{bare}' or '*{bare}'"
    return None


def _with_host(text: str) -> str:
    """A pattern with its scheme and host in the spelling of addresses."""
    at = path_at(text)
    origin, rest = text[:at], text[at:]
    if "*" in origin:
        return origin.lower() + rest
    try:
        return urls.parse(origin).href.removesuffix("/") + rest
    except BadUrl:
        raise ValueError(f"{origin!r} is no host") from None
