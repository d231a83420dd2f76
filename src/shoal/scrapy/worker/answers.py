"""Decides what an answer by an exit means, or the lack of one. Pure.

Scrapy's error messages may name the proxy: they are reworded here, without it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection
from typing import Any

from multidict import CIMultiDict
from OpenSSL import SSL
from scrapy import Request, exceptions
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response
from twisted.internet import error as twisted_errors
from twisted.internet.defer import CancelledError
from twisted.web.client import ResponseFailed

from shoal.core.blocks import Block, find_block
from shoal.core.exits import Blame
from shoal.core.failures import FailureKind, kind_of
from shoal.errors import ExitFault, FetchError
from shoal.fetch.http.tunnels.absolute import answer_of_proxy
from shoal.fetch.http.tunnels.connect import refused

LOOKED_AT_BYTES = 64 * 1024
"""How much of a compressed body is unpacked to look for a block."""

STOPPED = "download_stopped"
"""Scrapy's flag for an answer whose download was stopped."""
_ENCODED = {b"gzip": 47, b"x-gzip": 47, b"deflate": 47}
_tunnel_status = re.compile(r"'status': (\d{3})").search


class NotServed(IgnoreRequest):
    """A try by an exit that is to be made again by another: the project is not told. Scrapy
    silently passes on an IgnoreRequest."""


class ExitFailed(NotServed):
    """The exit is not usable."""


class Blocked(NotServed):
    """The site does not serve requests by this exit."""

    def __init__(self, status: int, block: Block) -> None:
        super().__init__(block.kind)
        self.status = status
        self.block = block


def _known(*names: str) -> tuple[type[BaseException], ...]:
    """Return those of Scrapy's own errors that this version has."""
    found = (getattr(exceptions, name, None) for name in names)
    return tuple(error for error in found if error is not None)


_NOT_REACHED = (
    *_known("DownloadConnectionRefusedError", "CannotResolveHostError"),
    twisted_errors.ConnectError,
    twisted_errors.DNSLookupError,
)
"""Errors of connecting and of name lookup. By an exit, both concern the exit only."""

_TIMED_OUT = (*_known("DownloadTimeoutError"), twisted_errors.TimeoutError)

_BROKEN = (
    *_TIMED_OUT,
    *_known("DownloadFailedError", "ResponseDataLossError"),
    ResponseFailed,
    twisted_errors.ConnectionLost,
    twisted_errors.ConnectionDone,
    OSError,
)

_NO_NAME = (*_known("CannotResolveHostError"), twisted_errors.DNSLookupError)
_CANCELLED = (*_known("DownloadCancelledError"), CancelledError)
"""What Scrapy raises for bodies that are too large."""

_BY_KIND = (
    (FailureKind.TIMEOUT, _TIMED_OUT),
    (FailureKind.DNS, _NO_NAME),
    (FailureKind.TOO_LARGE, _CANCELLED),
    (FailureKind.CONNECTION, (*_NOT_REACHED, *_BROKEN, TunnelError)),
)
"""The first match counts."""


def kind_of_error(error: BaseException | None) -> FailureKind:
    """Return the kind of failure that the lack of an answer is."""
    if isinstance(error, FetchError):
        return kind_of(error)
    if any(isinstance(cause, SSL.Error) for cause in _causes(error)):
        return FailureKind.TLS
    for kind, errors in _BY_KIND:
        if isinstance(error, errors):
            return kind
    return FailureKind.OTHER


def _causes(error: BaseException | None) -> list[object]:
    """Return an error and its causes, as Twisted's errors and Scrapy's around them name them."""
    cause = error.__cause__ if error is not None else None
    failures = [*getattr(error, "reasons", ()), *getattr(cause, "reasons", ())]
    return [error, cause, *(getattr(failure, "value", None) for failure in failures)]


def fault_of(error: Exception) -> Exception:
    """Return an error of a try by an exit without the exit's address: ExitFailed if the exit is to
    blame."""
    if isinstance(error, TunnelError):
        status = _tunnel_status(str(error))
        if status is None:
            return ExitFailed("the proxy does not speak as it should")
        return _told(refused(int(status[1]), "CONNECT", has_worked=True))
    if isinstance(error, _NOT_REACHED) and not isinstance(error, _TIMED_OUT):
        return ExitFailed("the proxy could not be reached")
    return error


def blame_of(error: Exception) -> Blame:
    """Return what the lack of an answer is blamed on, where it is not the exit alone. A stopped
    download was an answer."""
    if isinstance(error, (*_known("DownloadCancelledError", "StopDownload"), CancelledError)):
        return Blame.NOBODY
    return Blame.PAIR if isinstance(error, (TunnelError, *_BROKEN)) else Blame.NOBODY


def _told(fault: ExitFault) -> Exception:
    if Blame(fault.blame) is Blame.PAIR:
        return TunnelError(str(fault))  # Scrapy retries after these.
    return ExitFailed(str(fault))


def proxys_own(response: Response) -> Exception | None:
    """Return the error that an answer to plain http is, if it certainly comes from the proxy
    itself."""
    fault = answer_of_proxy(response.status, text_of(response.headers))
    return _told(fault) if fault is not None else None


def block_in(request: Request, response: Response, wanted: Collection[int] | None) -> Block | None:
    """Return the block that an answer is. None: it is none, or the project wants to see such
    answers. `wanted` are statuses other than 200; None: all."""
    status = response.status
    if not 200 <= status < 300 and (wanted is None or status in wanted):
        return None
    return find_block(
        status,
        text_of(response.headers),
        _unpacked(response),
        url=request.url,
        may_be_empty=request.method != "GET" or STOPPED in response.flags,
    )


def robots_block(response: Response) -> Block | None:
    """Return the block that an answer for a robots.txt is, or None. A 403 is none: it means to all
    who ask that there is no robots.txt."""
    block = find_block(
        response.status,
        text_of(response.headers),
        _unpacked(response),
        url=response.url,
        may_be_empty=True,
    )
    return None if block is None or block.kind == "forbidden" else block


def text_of(headers: Headers) -> CIMultiDict[str]:
    """Return headers, each with its last value."""
    pairs = ((name, headers.get(name) or b"") for name in headers)
    return CIMultiDict((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)


def _unpacked(response: Response) -> bytes:
    """Return the body, or the start of it, as Scrapy will unpack it. A body that cannot be unpacked
    here is returned as it is: no words show in it."""
    encoding = (response.headers.get("Content-Encoding") or b"").strip().lower()
    if not response.body or encoding not in _ENCODED:
        return response.body
    try:
        unpacking = zlib.decompressobj(_ENCODED[encoding])
        return unpacking.decompress(response.body, LOOKED_AT_BYTES)
    except zlib.error:
        return response.body


def wire_bytes(request: Request, response: Response | None) -> int:
    """Return about how many bytes a request and its answer took on the network."""
    sent = len(request.method) + len(request.url) + _length(request)
    return sent + (_length(response) if response is not None else 0)


def _length(message: Any) -> int:
    return len(message.headers.to_string()) + len(message.body) + len("\r\nHTTP/1.1 \r\n\r\n")
