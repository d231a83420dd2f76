"""The archive format `warc`: each batch is one WARC 1.1 file with a gzip member for each record.

A page is two records: its `response`, and a `metadata` record with its description. Needs the extra
`warc`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import Any, NoReturn

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from shoal.archive.description import as_latin, describe, described, page_of
from shoal.archive.formats import PageFormat
from shoal.archive.gzip import compressed, find_member, member_at
from shoal.archive.names import batch_name
from shoal.archive.objects import Objects
from shoal.archive.port import OnUnreadable, RawPage
from shoal.core.urls import parse
from shoal.errors import StorageFailed
from shoal.runtime.patience import patiently
from shoal.version import __version__

VERSION = "WARC/1.1"
MAGIC = b"WARC/1."
"""The beginning of every record."""
ORIGINAL = "X-Archive-Orig-"
"""The prefix for headers that describe how the body was transferred, as they no longer apply."""

_OF_TRANSFER = {"content-encoding", "content-length", "transfer-encoding"}
_ENDS_LINE = str.maketrans("\r\n\0", "   ")


class Warc(PageFormat):
    """Stores pages in the format that other web archive tools read."""

    folder = "warc"

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        name = batch_name(crawl, self.folder, ".warc.gz")
        data, offsets = await asyncio.to_thread(_written, name, pages)
        await self._objects.put(name, data)
        return [f"{name}#{offset}" for offset in offsets]

    async def pages_in(self, name: str, on_unreadable: OnUnreadable) -> AsyncIterator[RawPage]:
        try:
            data = await patiently("archive", partial(self._objects.get, name))
        except StorageFailed as error:
            on_unreadable(error)
            return
        for page in _pages(data, 0, name, on_unreadable):
            yield page

    async def page_at(self, name: str, where: int) -> RawPage:
        for page in _pages(await self._objects.get(name), where, name, _raise):
            return page
        raise StorageFailed(f"{self._objects.shown} has no page at {name}#{where}")


# Writing


def _written(name: str, pages: Sequence[RawPage]) -> tuple[bytes, list[int]]:
    """The content of a WARC file, and the offset of each page in it."""
    out = BytesIO()
    about = {"software": f"shoal/{__version__}", "format": "WARC File Format 1.1"}
    out.write(_member(_writer().create_warcinfo_record(name.rpartition("/")[2], about)))
    offsets = []
    for page in pages:
        offsets.append(out.tell())
        response = _response(page)
        out.write(_member(response))
        out.write(_member(_metadata(page, response.rec_headers.get_header("WARC-Record-ID"))))
    return out.getvalue(), offsets


def _writer(out: BytesIO | None = None) -> Any:
    return WARCWriter(out, gzip=False, warc_version=VERSION)


def _member(record: Any) -> bytes:
    """A record as a gzip member. warcio itself would use the slowest compression level."""
    plain = BytesIO()
    _writer(plain).write_record(record)
    return compressed(plain.getvalue())


class _HttpHead(StatusAndHeaders):  # type: ignore[misc]
    """Writes headers as Latin-1. warcio would percent-escape characters that are not ASCII."""

    def compute_headers_buffer(self, header_filter: Any = None) -> None:
        self.headers_buff = self.to_bytes(header_filter, "latin-1")


def _response(page: RawPage) -> Any:
    headers = _HttpHead(_status_line(page.status), _http_headers(page), "HTTP/1.1")
    return _writer().create_warc_record(
        _address(page),
        "response",
        payload=BytesIO(page.body),
        length=len(page.body),
        http_headers=headers,
        warc_headers_dict={"WARC-Date": _date(page)},
    )


def _metadata(page: RawPage, response_id: str) -> Any:
    description = describe(page)
    return _writer().create_warc_record(
        _address(page),
        "metadata",
        payload=BytesIO(description),
        length=len(description),
        warc_content_type="application/json",
        warc_headers_dict={"WARC-Date": _date(page), "WARC-Concurrent-To": response_id},
    )


def _http_headers(page: RawPage) -> list[tuple[str, str]]:
    """The headers adjusted to the decompressed body. The description has them as received."""
    headers = []
    for name, value in page.headers:
        prefix = ORIGINAL if name.lower() in _OF_TRANSFER else ""
        headers.append((prefix + _on_one_line(name), _on_one_line(value)))
    return [*headers, ("Content-Length", str(len(page.body)))]


def _on_one_line(text: str) -> str:
    return as_latin(text).translate(_ENDS_LINE)


def _status_line(status: int) -> str:
    known = status in HTTPStatus.__members__.values()
    return f"{status} {HTTPStatus(status).phrase if known else 'Unknown'}"


def _address(page: RawPage) -> str:
    return parse(page.task.url).href


def _date(page: RawPage) -> str:
    return datetime.fromtimestamp(page.fetched_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# Reading


def _pages(data: bytes, offset: int, name: str, on_unreadable: OnUnreadable) -> Iterator[RawPage]:
    """Read the pages from an offset on. Records that Shoal did not write are skipped."""
    response_id, body = "", b""
    for record in _records(data, offset, name, on_unreadable):
        header = record.rec_headers.get_header
        if record.rec_type == "response":
            response_id, body = header("WARC-Record-ID"), record.raw_stream.read()
        elif record.rec_type == "metadata" and header("WARC-Concurrent-To") == response_id:
            try:
                page = page_of(described(record.raw_stream.read(), name), body, name)
            except StorageFailed as error:
                on_unreadable(error)
            else:
                yield page


def _records(data: bytes, offset: int, name: str, on_unreadable: OnUnreadable) -> Iterator[Any]:
    """Read the WARC records from an offset on.

    warcio itself would not notice a truncated file, and would stop at a damaged record.
    """
    if not data:
        on_unreadable(StorageFailed(f"{name} is damaged: it is empty"))
    position = offset
    while position < len(data):
        place = f"{name}#{position}"
        try:
            member, position = member_at(data, position, place)
            yield from ArchiveIterator(BytesIO(member))
        except ArchiveLoadFailed as error:
            on_unreadable(StorageFailed(f"{place} is damaged: {error}"))
        except StorageFailed as error:
            on_unreadable(error)
            position = find_member(data, position + 1, MAGIC)


def _raise(error: StorageFailed) -> NoReturn:
    raise error
