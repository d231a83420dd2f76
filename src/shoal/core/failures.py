"""Why tries fail, by kind: few enough to count each of them, for a crawl and for every host."""

from __future__ import annotations

import ssl
from enum import StrEnum

from shoal.core.blocks import FORBIDDEN
from shoal.core.policy import TOO_MANY
from shoal.errors import FetchError


class FailureKind(StrEnum):
    """The kind of a failure: of a try that is retried, or that its task died of. Frontiers store
    the names, so none of them changes."""

    TIMEOUT = "timeout"
    """The host did not answer in time."""
    CONNECTION = "connection"
    """No connection, or it was closed too early."""
    DNS = "dns"
    """The host's name could not be looked up."""
    TLS = "tls"
    """The certificate does not hold, or the handshake failed."""
    PROTOCOL = "protocol"
    """What came is no HTTP, or cannot be unpacked."""
    TOO_LARGE = "too_large"
    STATUS_4XX = "status_4xx"
    STATUS_5XX = "status_5xx"
    BLOCKED = "blocked"
    """The site did not serve us: 403, 429, or what blocks.py knows it by."""
    ROBOTS = "robots"
    """The host's robots.txt could not be had."""
    REDIRECT = "redirect"
    """Redirects in a loop, too many of them, or to something that is no address."""
    REFUSED = "refused"
    """We did not send it: a private address, or what the rules of the crawl do not allow."""
    EXIT = "exit"
    """For too long no exit of its pool could be used."""
    LOGIN = "login"
    """For too long no account could be used, or its session ended again and again."""
    HANDLER = "handler"
    """The spider raised an error, or what came cannot be parsed."""
    POISON = "poison"
    """Worker after worker died with it."""
    OTHER = "other"
    """None of these, or not known: an earlier version noted no kinds."""


def kind_named(name: str | None) -> FailureKind:
    """The kind that was stored by this name. A later version may know others."""
    return _KINDS.get(name or "", FailureKind.OTHER)


_KINDS = {kind.value: kind for kind in FailureKind}


def kind_of(error: FetchError) -> FailureKind:
    """The kind of failure that the lack of a page is. Fetchers say by the cause what it was, where
    that is an error of the system's."""
    if isinstance(error.__cause__, TimeoutError):
        return FailureKind.TIMEOUT
    if isinstance(error.__cause__, ssl.SSLError):
        return FailureKind.TLS
    return FailureKind(error.kind)


def kind_of_status(status: int) -> FailureKind:
    """The kind of failure that an answer is, by its status alone."""
    if status in (FORBIDDEN, TOO_MANY):
        return FailureKind.BLOCKED
    if 400 <= status < 500:
        return FailureKind.STATUS_4XX
    return FailureKind.STATUS_5XX if 500 <= status < 600 else FailureKind.OTHER
