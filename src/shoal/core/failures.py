"""The kinds of failed tries: few enough to count each of them for a crawl and for every host."""

from __future__ import annotations

import ssl
from enum import StrEnum

from shoal.core.blocks import FORBIDDEN
from shoal.core.policy import TOO_MANY
from shoal.errors import FetchError


class FailureKind(StrEnum):
    """The kind of a failure that leads to a retry or to the death of a task. Frontiers store the
    names, so they must not change."""

    TIMEOUT = "timeout"
    """The host did not answer in time."""
    CONNECTION = "connection"
    """No connection could be made, or it was closed too early."""
    DNS = "dns"
    """The host's name could not be looked up."""
    TLS = "tls"
    """The certificate is not valid, or the handshake failed."""
    PROTOCOL = "protocol"
    """The response is no valid HTTP, or cannot be decompressed."""
    TOO_LARGE = "too_large"
    STATUS_4XX = "status_4xx"
    STATUS_5XX = "status_5xx"
    BLOCKED = "blocked"
    """The site refused to serve the request: 403, 429, or a block that blocks.py recognises."""
    ROBOTS = "robots"
    """The host's robots.txt could not be fetched."""
    REDIRECT = "redirect"
    """Redirects in a loop, too many of them, or one to an invalid address."""
    REFUSED = "refused"
    """The worker refused to send it: a private address, or something that the rules forbid."""
    EXIT = "exit"
    """No exit of its pool could be used for too long."""
    LOGIN = "login"
    """No account could be used for too long, or its session ended again and again."""
    HANDLER = "handler"
    """The spider raised an error, or the response cannot be parsed."""
    POISON = "poison"
    """Several workers died while they worked on it."""
    OTHER = "other"
    """None of these, or unknown: earlier versions stored no kinds."""


def kind_named(name: str | None) -> FailureKind:
    """The kind stored under this name. A name that only a later version knows is OTHER."""
    return _KINDS.get(name or "", FailureKind.OTHER)


_KINDS = {kind.value: kind for kind in FailureKind}


def kind_of(error: FetchError) -> FailureKind:
    """The kind of a failure to get a page. If the system reported it, that error is its cause."""
    if isinstance(error.__cause__, TimeoutError):
        return FailureKind.TIMEOUT
    if isinstance(error.__cause__, ssl.SSLError):
        return FailureKind.TLS
    return FailureKind(error.kind)


def kind_of_status(status: int) -> FailureKind:
    """The kind of failure of a response, by its status alone."""
    if status in (FORBIDDEN, TOO_MANY):
        return FailureKind.BLOCKED
    if 400 <= status < 500:
        return FailureKind.STATUS_4XX
    return FailureKind.STATUS_5XX if 500 <= status < 600 else FailureKind.OTHER
