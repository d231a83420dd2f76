"""What an answer that came by an exit says, or the lack of one. Decisions only.

What Scrapy says of errors may name the proxy: it is said anew here, without it.
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
"""So much of a compressed body is unpacked to look for a block."""

STOPPED = "download_stopped"
"""Scrapy's flag for an answer that nobody wanted to its end."""
_ENCODED = {b"gzip": 47, b"x-gzip": 47, b"deflate": 47}
_tunnel_status = re.compile(r"'status': (\d{3})").search


class NotServed(IgnoreRequest):
    """A try by an exit that is to be made again by another: nobody in the project is told. As an
    IgnoreRequest it is passed on by Scrapy without a word."""


class ExitFailed(NotServed):
    """The exit is not fit for use."""


class Blocked(NotServed):
    """The site does not serve who comes by this exit."""

    def __init__(self, status: int, block: Block) -> None:
        super().__init__(block.kind)
        self.status = status
        self.block = block


def _known(*names: str) -> tuple[type[BaseException], ...]:
    """Scrapy's own errors, as far as this version has them."""
    found = (getattr(exceptions, name, None) for name in names)
    return tuple(error for error in found if error is not None)


_NOT_REACHED = (
    *_known("DownloadConnectionRefusedError", "CannotResolveHostError"),
    twisted_errors.ConnectError,
    twisted_errors.DNSLookupError,
)
"""By an exit, it is only the exit that we connect to, and whose name is looked up."""

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
"""What Scrapy raises for bodies that are larger than they may be."""

_BY_KIND = (
    (FailureKind.TIMEOUT, _TIMED_OUT),
    (FailureKind.DNS, _NO_NAME),
    (FailureKind.TOO_LARGE, _CANCELLED),
    (FailureKind.CONNECTION, (*_NOT_REACHED, *_BROKEN, TunnelError)),
)
"""The first that fits counts."""


def kind_of_error(error: BaseException | None) -> FailureKind:
    """The kind of failure that the lack of an answer is."""
    if isinstance(error, FetchError):
        return kind_of(error)
    if any(isinstance(cause, SSL.Error) for cause in _causes(error)):
        return FailureKind.TLS
    for kind, errors in _BY_KIND:
        if isinstance(error, errors):
            return kind
    return FailureKind.OTHER


def _causes(error: BaseException | None) -> list[object]:
    """What Twisted's errors, and Scrapy's around them, say that they come from."""
    cause = error.__cause__ if error is not None else None
    failures = [*getattr(error, "reasons", ()), *getattr(cause, "reasons", ())]
    return [error, cause, *(getattr(failure, "value", None) for failure in failures)]


def fault_of(error: Exception) -> Exception:
    """An error of a try by an exit, without the exit's address: ExitFailed if it is to blame."""
    if isinstance(error, TunnelError):
        status = _tunnel_status(str(error))
        if status is None:
            return ExitFailed("the proxy does not speak as it should")
        return _told(refused(int(status[1]), "CONNECT", has_worked=True))
    if isinstance(error, _NOT_REACHED) and not isinstance(error, _TIMED_OUT):
        return ExitFailed("the proxy could not be reached")
    return error


def blame_of(error: Exception) -> Blame:
    """Whom the lack of an answer is blamed on, where it is not the exit alone. An answer that was
    not wanted to its end was one."""
    if isinstance(error, (*_known("DownloadCancelledError", "StopDownload"), CancelledError)):
        return Blame.NOBODY
    return Blame.PAIR if isinstance(error, (TunnelError, *_BROKEN)) else Blame.NOBODY


def _told(fault: ExitFault) -> Exception:
    if Blame(fault.blame) is Blame.PAIR:
        return TunnelError(str(fault))  # Scrapy tries again after these.
    return ExitFailed(str(fault))


def proxys_own(response: Response) -> Exception | None:
    """The error that an answer to plain http is, if it is certainly the proxy's own."""
    fault = answer_of_proxy(response.status, text_of(response.headers))
    return _told(fault) if fault is not None else None


def block_in(request: Request, response: Response, wanted: Collection[int] | None) -> Block | None:
    """What kind of block an answer is. None: it is none, or the project wants to see such answers.
    `wanted` are statuses other than 200; None: all."""
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
    """The same of a robots.txt. A 403 is none, to all who ask for one: there is none, then."""
    block = find_block(
        response.status,
        text_of(response.headers),
        _unpacked(response),
        url=response.url,
        may_be_empty=True,
    )
    return None if block is None or block.kind == "forbidden" else block


def text_of(headers: Headers) -> CIMultiDict[str]:
    """Headers, each by its last value."""
    pairs = ((name, headers.get(name) or b"") for name in headers)
    return CIMultiDict((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)


def _unpacked(response: Response) -> bytes:
    """The body, or the start of it, as it will be when Scrapy has unpacked it. What cannot be
    unpacked here shows no words."""
    encoding = (response.headers.get("Content-Encoding") or b"").strip().lower()
    if not response.body or encoding not in _ENCODED:
        return response.body
    try:
        unpacking = zlib.decompressobj(_ENCODED[encoding])
        return unpacking.decompress(response.body, LOOKED_AT_BYTES)
    except zlib.error:
        return response.body


def wire_bytes(request: Request, response: Response | None) -> int:
    """What a request and its answer took of the network, about."""
    sent = len(request.method) + len(request.url) + _length(request)
    return sent + (_length(response) if response is not None else 0)


def _length(message: Any) -> int:
    return len(message.headers.to_string()) + len(message.body) + len("\r\nHTTP/1.1 \r\n\r\n")
