"""Sitemaps: what they list, read as a stream. They are as untrusted as any page."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from xml.parsers import expat

import msgspec

from shoal.errors import ShoalError
from shoal.fetch.http.bodies import MAX_GZIP_MEMBERS

MAX_BYTES = 64 * 1024 * 1024
"""What lies beyond is not read: the protocol allows 50 MB, unpacked."""
MAX_LOCATION = 8_000

MAX_ELEMENTS = 2_000_000
"""Those of as many addresses as the protocol allows, with forty elements each: pictures and
translations have some of their own."""
MAX_DEPTH = 50
"""Elements, one in the other. The protocol has three, pictures and films some more."""

CHUNK_BYTES = 32 * 1024
"""What is read at once, and the longest tag: ten milliseconds, whatever it holds."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_ROOTS = {"urlset": "url", "sitemapindex": "sitemap"}
_LINE = re.compile(rb"\S[^\n]*")


class BadSitemap(ShoalError):
    """A sitemap, or a part of it, that cannot be read. What came before it counts."""


class Location(msgspec.Struct, frozen=True):
    """An address in a sitemap."""

    url: str
    lastmod: float | None = None
    is_sitemap: bool = False
    """Whether it is that of another sitemap."""


def read_sitemap(body: bytes) -> Iterator[Location | None]:
    """What a sitemap lists: XML, plain text, or either of them packed. None after each piece of it,
    whatever that held: others may want to have their turn. Raises BadSitemap in the end if it was
    not whole."""
    reader: _XmlReader | _TextReader | None = None
    size = 0
    for chunk in _unpacked(body):
        size += len(chunk)
        if size > MAX_BYTES:
            raise BadSitemap(f"more than {MAX_BYTES >> 20} MB")
        if reader is None and chunk:
            reader = _reader_for(chunk)
        if reader is not None:
            yield from reader.feed(chunk)
        yield None
    if reader is not None:
        yield from reader.finish()


def _unpacked(body: bytes) -> Iterator[bytes]:
    """The content, piece by piece. Some may be empty."""
    pieces = (body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES))
    if not body.startswith(_GZIP):
        yield from pieces
        return
    unpacker, members = zlib.decompressobj(wbits=_GZIP_WINDOW), 1
    for piece in pieces:
        rest = piece
        while rest:
            if unpacker.eof:  # Gzip data may be several files in a row, and padding.
                members += 1
                if not _GZIP.startswith(rest[:2]) or members > MAX_GZIP_MEMBERS:
                    return
                unpacker = zlib.decompressobj(wbits=_GZIP_WINDOW)
            try:
                yield unpacker.decompress(rest, CHUNK_BYTES)
            except zlib.error as error:
                raise BadSitemap(f"not gzip: {error}") from None
            rest = unpacker.unconsumed_tail or unpacker.unused_data
    if not unpacker.eof:
        raise BadSitemap("cut off")


def _reader_for(start: bytes) -> _XmlReader | _TextReader:
    start = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:500].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise BadSitemap("it is HTML, not a sitemap")
    is_xml = start.startswith((b"<", b"\xfe\xff", b"\xff\xfe"))
    return _XmlReader() if is_xml else _TextReader()


class _TextReader:
    """Reads lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Location]:
        """What was found in one more piece."""
        lines, _, self._rest = (self._rest + data).rpartition(b"\n")
        for line in _LINE.finditer(lines):
            text = line[0].decode("utf-8", "replace")
            yield Location(text.removeprefix("\ufeff").strip())
        if len(self._rest) > CHUNK_BYTES:
            raise BadSitemap("neither XML nor lines of text")

    def finish(self) -> Iterator[Location]:
        """What is left at the end."""
        return self.feed(b"\n")


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
        self._fed = 0
        self._elements = 0
        self._path: list[str] = []
        self._namespace = ""
        self._fields: dict[str, str] = {}
        self._found: list[Location] = []

    def feed(self, data: bytes, *, is_last: bool = False) -> Iterator[Location]:
        """What was found in one more piece."""
        flaw: BadSitemap | None = None
        try:
            self._parse(data, is_last=is_last)
        except expat.ExpatError as error:
            flaw = BadSitemap(f"not whole: {error}")
        except BadSitemap as error:
            flaw = error
        yield from self._taken()
        if flaw is not None:
            raise flaw

    def finish(self) -> Iterator[Location]:
        """What is left at the end."""
        return self.feed(b"", is_last=True)

    def _parse(self, data: bytes, *, is_last: bool) -> None:
        self._parser.Parse(data, is_last)
        self._fed += len(data)
        # Expat looks at a tag, or a comment, from its start again with each piece of it.
        if self._fed - self._parser.CurrentByteIndex > CHUNK_BYTES:
            raise BadSitemap(f"a tag of more than {CHUNK_BYTES >> 10} kB")

    def _taken(self) -> list[Location]:
        found, self._found = self._found, []
        return found

    def _begin(self, name: str, _attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise BadSitemap(f"more than {MAX_ELEMENTS:,} elements")
        if len(self._path) >= MAX_DEPTH:
            raise BadSitemap(f"more than {MAX_DEPTH} elements, one in the other")
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
            if len(before) <= MAX_LOCATION:  # What is longer is no address, however it goes on.
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
