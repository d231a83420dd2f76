"""Reads WARC files with other tools: warcio and fastwarc."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # fastwarc warns of its own classes.
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import WarcRecordType


class Found(NamedTuple):
    """A response as a tool reads it."""

    url: str
    status: int
    headers: dict[str, str]
    """The headers by lower-case name. Of several with the same name, the last."""
    body: bytes


def kinds_in(data: bytes) -> list[str]:
    """The kinds of all records, in order."""
    return [record.rec_type for record in ArchiveIterator(BytesIO(data))]


def read_by_warcio(data: bytes) -> list[Found]:
    """The responses in a file. All digests are checked, and bodies decoded as their headers say."""
    found = []
    for record in ArchiveIterator(BytesIO(data), check_digests="raise"):
        assert record.rec_headers.protocol == "WARC/1.1"
        body = record.content_stream().read()
        if record.rec_type == "response":
            url = record.rec_headers.get_header("WARC-Target-URI")
            headers = {name.lower(): value for name, value in record.http_headers.headers}
            found.append(Found(url, int(record.http_headers.get_statuscode()), headers, body))
    return found


def read_by_fastwarc(data: bytes) -> list[Found]:
    """The responses in a file, checked and decoded as in `read_by_warcio`."""
    found = []
    for record in FastIterator(BytesIO(data), parse_http=False):
        assert record.verify_block_digest()
        if record.record_type == WarcRecordType.response:
            record.parse_http(auto_decode="all")
            assert record.verify_payload_digest()
            headers = {name.lower(): value for name, value in record.http_headers}
            status = record.http_headers.status_code
            assert status is not None
            found.append(
                Found(record.headers["WARC-Target-URI"], status, headers, record.reader.read())
            )
    return found


def offsets_of(data: bytes, kind: str) -> list[int]:
    """The offsets at which the records of a kind begin."""
    iterator = ArchiveIterator(BytesIO(data))
    return [iterator.get_record_offset() for record in iterator if record.rec_type == kind]
