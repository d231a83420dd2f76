"""Why a request failed, in one line for people: no class names, no addresses, no tracebacks."""

from __future__ import annotations

import os
import socket
import ssl

CLOSED = "server closed the connection"
CLOSED_EARLY = "server closed the connection before the body was complete"
HEADERS_TOO_LARGE = "response headers too large"
NOT_HTTP = "not a valid HTTP response"

_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)


def cause(error: Exception) -> str:
    """The cause of an error that the event loop or the system raised."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"TLS: certificate verify failed: {error.verify_message}"
        case ssl.SSLError():
            reason: str = getattr(error, "reason", None) or "handshake failed"
            return f"TLS: {reason.lower().replace('_', ' ')}"
        case socket.gaierror():
            return _dns_cause(error)
        case OSError():
            return _system_cause(error)
        case _:  # uvloop reports some failures to connect as RuntimeError.
            return "request failed"


def _dns_cause(error: socket.gaierror) -> str:
    if error.errno in _NO_SUCH_NAME:
        return "DNS: name not found"
    return f"DNS: {(error.strerror or 'lookup failed').lower()}"


def _system_cause(error: OSError) -> str:
    """What the operating system calls it: "connection refused", "no route to host"."""
    return os.strerror(error.errno).lower() if error.errno else "cannot connect"
