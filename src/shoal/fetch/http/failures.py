"""Says why a request failed, in one line for people: no class names, addresses or tracebacks."""

from __future__ import annotations

import errno
import os
import ssl

CLOSED = "server closed the connection"
CLOSED_EARLY = "server closed the connection before the body was complete"
HEADERS_TOO_LARGE = "response headers too large"
NOT_HTTP = "not a valid HTTP response"

_OWN_FAULTS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENETDOWN})


def is_own_fault(error: OSError, *, is_ipv4: bool) -> bool:
    """Whether this machine is to blame for an error, and not the host it tried to reach.

    A missing route does not count: it may be that one host cannot be reached from here, and its
    tasks would be tried for ever. EADDRNOTAVAIL means for IPv4 that all local ports are in use, but
    for IPv6 that this machine has no such address.
    """
    if isinstance(error, ssl.SSLError):
        return False
    return error.errno in _OWN_FAULTS or (is_ipv4 and error.errno == errno.EADDRNOTAVAIL)


def cause(error: Exception) -> str:
    """The cause of an error that the event loop or the system raised."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"TLS: certificate verify failed: {error.verify_message}"
        case ssl.SSLError():
            reason: str = getattr(error, "reason", None) or "handshake failed"
            return f"TLS: {reason.lower().replace('_', ' ')}"
        case OSError():
            return _system_cause(error)
        case _:  # uvloop reports some failures to connect as RuntimeError.
            return "request failed"


def _system_cause(error: OSError) -> str:
    """The operating system's words for an error: "connection refused", "no route to host"."""
    return os.strerror(error.errno).lower() if error.errno else "cannot connect"
