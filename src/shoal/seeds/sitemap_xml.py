"""Reads the locations in a sitemap as a stream. Sitemaps are as untrusted as any page."""

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
"""The size up to which a sitemap is read. The protocol allows 50 MB, decompressed."""
MAX_LOCATION = 8_000

MAX_ELEMENTS = 2_000_000
"""The maximum number of elements: enough for all the URLs that the protocol allows, with forty
elements each, as pictures and translations have their own."""
MAX_DEPTH = 50
"""The maximum nesting of elements. The protocol has three levels, pictures and videos some more."""

CHUNK_BYTES = 32 * 1024
"""How much is read at once, and the longest tag. It takes at most ten milliseconds, whatever the
content."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_ROOTS = {"urlset": "url", "sitemapindex": "sitemap"}
_LINE = re.compile(rb"\S[^\n]*")


class BadSitemap(ShoalError):
    """A sitemap, or a part of it, cannot be read. The locations before that part count."""


class Location(msgspec.Struct, frozen=True):
    """A URL in a sitemap."""

    url: str
    lastmod: float | None = None
    is_sitemap: bool = False
    """Whether the URL is that of another sitemap."""


def read_sitemap(body: bytes) -> Iterator[Location | None]:
    """Read the locations in a sitemap: XML or plain text, compressed or not.

    Yields None after each chunk, whatever it contained, so that the caller can let other tasks run.
    Raises BadSitemap at the end if the sitemap was not complete.
    """
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
    """The decompressed content in chunks, some of which may be empty."""
    pieces = (body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES))
    if not body.startswith(_GZIP):
        yield from pieces
        return
    unpacker, members = zlib.decompressobj(wbits=_GZIP_WINDOW), 1
    for piece in pieces:
        rest = piece
        while rest:
            if unpacker.eof:  # Gzip data may be several files in a row, followed by padding.
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
    """Reads a sitemap of lines with one URL each."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Location]:
        """The locations in the next chunk."""
        lines, _, self._rest = (self._rest + data).rpartition(b"\n")
        for line in _LINE.finditer(lines):
            text = line[0].decode("utf-8", "replace")
            yield Location(text.removeprefix("\ufeff").strip())
        if len(self._rest) > CHUNK_BYTES:
            raise BadSitemap("neither XML nor lines of text")

    def finish(self) -> Iterator[Location]:
        """The remaining locations at the end."""
        return self.feed(b"\n")


class _XmlReader:
    """Reads an XML sitemap with expat.

    Expat resolves no external entities. A sitemap that declares entities is rejected, as they may
    expand without limit.
    """

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
        """The locations in the next chunk. Raises BadSitemap after those before the flaw."""
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
        """The remaining locations at the end. Raises BadSitemap if the sitemap is not complete."""
        return self.feed(b"", is_last=True)

    def _parse(self, data: bytes, *, is_last: bool) -> None:
        self._parser.Parse(data, is_last)
        self._fed += len(data)
        # With each chunk, expat scans an unfinished tag or comment again from its start.
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
        # The <image:loc> of an image is in another namespace and does not count.
        self._path.append(local if namespace == self._namespace else name)
        if len(self._path) == 2:
            self._fields = {}

    def _text(self, text: str) -> None:
        if len(self._path) == 3 and self._path[2] in ("loc", "lastmod"):
            before = self._fields.get(self._path[2], "")
            if len(before) <= MAX_LOCATION:  # A longer text is not a URL anyway.
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
    """The time of a <lastmod>: a year, a month, a day or a moment. None if it is not valid."""
    text = fields.get("lastmod", "").strip()
    padded = text + "0001-01-01"[len(text) :] if len(text) in (4, 7) else text
    try:
        moment = datetime.fromisoformat(padded)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
