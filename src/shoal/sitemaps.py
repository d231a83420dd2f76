"""Sitemaps: what they list, read as a stream. They are as untrusted as any page."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from xml.parsers import expat

import msgspec

from shoal.errors import ShoalError

MAX_BYTES = 64 * 1024 * 1024
"""What lies beyond is not read: the protocol allows 50 MB, unpacked."""
MAX_LOCATION = 8_000
CHUNK_BYTES = 64 * 1024

_GZIP = b"\x1f\x8b"
_ROOTS = {"urlset": "url", "sitemapindex": "sitemap"}


class BadSitemap(ShoalError):
    """A sitemap, or a part of it, that cannot be read. What came before it counts."""


class Location(msgspec.Struct, frozen=True):
    """An address in a sitemap."""

    url: str
    lastmod: float | None = None
    is_sitemap: bool = False
    """Whether it is that of another sitemap."""


def read_sitemap(body: bytes) -> Iterator[Location]:
    """What a sitemap lists: XML, plain text, or either of them packed. Raises BadSitemap in the
    end if it was not whole."""
    chunks = _unpacked(body)
    first = next(chunks, b"")
    start = first.lstrip(b"\xef\xbb\xbf \t\r\n")[:500].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise BadSitemap("it is HTML, not a sitemap")
    if not start.startswith((b"<", b"\xfe\xff", b"\xff\xfe")):
        yield from _from_text(first, chunks)
        return
    reader = _XmlReader()
    yield from reader.feed(first)
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.feed(b"", is_last=True)


def _unpacked(body: bytes) -> Iterator[bytes]:
    if not body.startswith(_GZIP):
        for begin in range(0, min(len(body), MAX_BYTES), CHUNK_BYTES):
            yield body[begin : begin + CHUNK_BYTES]
        return
    unpacker, rest, size = zlib.decompressobj(wbits=31), body, 0
    while rest and not unpacker.eof:
        try:
            chunk = unpacker.decompress(rest, CHUNK_BYTES)
        except zlib.error as error:
            raise BadSitemap(f"not gzip: {error}") from None
        rest = unpacker.unconsumed_tail
        size += len(chunk)
        if size > MAX_BYTES:
            raise BadSitemap(f"more than {MAX_BYTES >> 20} MB")
        if chunk:
            yield chunk
        elif not rest:
            break
    if not unpacker.eof:
        raise BadSitemap("cut off")


def _from_text(first: bytes, chunks: Iterator[bytes]) -> Iterator[Location]:
    rest = first.removeprefix(b"\xef\xbb\xbf")
    while rest:
        *lines, rest = (rest + next(chunks, b"\n")).split(b"\n")
        for line in lines:
            if text := line.decode("utf-8", "replace").strip():
                yield Location(text)
        if len(rest) > CHUNK_BYTES:
            raise BadSitemap("neither XML nor lines of text")


class _XmlReader:
    """Feeds an XML parser and hands out what it found. Expat resolves nothing from outside; what
    declares entities of its own is refused, for they may unfold without end."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._entity
        self._path: list[str] = []
        self._namespace = ""
        self._fields: dict[str, str] = {}
        self._found: list[Location] = []

    def feed(self, data: bytes, *, is_last: bool = False) -> Iterator[Location]:
        """What was found in one more piece."""
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            yield from self._taken()
            raise BadSitemap(f"not whole: {error}") from None
        yield from self._taken()

    def _taken(self) -> list[Location]:
        found, self._found = self._found, []
        return found

    def _begin(self, name: str, _attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        if not self._path:
            if local not in _ROOTS:
                raise BadSitemap(f"it is <{local[:50]}>, not a sitemap")
            self._namespace = namespace
        # An image's <image:loc> is in another namespace, and none of ours.
        self._path.append(local if namespace == self._namespace else name)
        if len(self._path) == 2:
            self._fields = {}

    def _text(self, text: str) -> None:
        if len(self._path) == 3 and self._path[2] in ("loc", "lastmod"):
            before = self._fields.get(self._path[2], "")
            self._fields[self._path[2]] = (before + text)[: MAX_LOCATION + 1]

    def _end(self, _name: str) -> None:
        if len(self._path) == 2 and self._path[1] == _ROOTS[self._path[0]]:
            url = self._fields.get("loc", "").strip()
            if url:
                is_sitemap = self._path[1] == "sitemap"
                self._found.append(Location(url, parse_lastmod(self._fields), is_sitemap))
        self._path.pop()

    def _entity(self, *_declaration: Any) -> None:
        raise BadSitemap("it declares entities")


def parse_lastmod(fields: dict[str, str]) -> float | None:
    """The time of a <lastmod>: a year, a month, a day or a moment. None if it is none of these."""
    text = fields.get("lastmod", "").strip()
    padded = text + "0001-01-01"[len(text) :] if len(text) in (4, 7) else text
    try:
        moment = datetime.fromisoformat(padded)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
