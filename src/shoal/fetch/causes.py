"""Why a request failed, in one line for people: no class names, no addresses, no tracebacks."""

from __future__ import annotations

import os
import socket
import ssl

import aiohttp

CLOSED = "server closed the connection"
CLOSED_EARLY = "server closed the connection before the body was complete"
HEADERS_TOO_LARGE = "response headers too large"
NOT_HTTP = "not a valid HTTP response"

_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)


def cause(error: Exception) -> str:
    """The cause of an error that aiohttp raised."""
    match error:
        case aiohttp.ClientConnectorError():
            return _no_connection(error)
        case aiohttp.ClientResponseError():
            return _bad_response(error.message)
        case aiohttp.ClientPayloadError():
            return CLOSED_EARLY
        case aiohttp.ClientConnectionError() | OSError():
            return _system_cause(error) or CLOSED
        case _:
            return "request failed"


def _no_connection(error: aiohttp.ClientConnectorError) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _tls_cause(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            return _tls_cause(error.os_error)
        case aiohttp.ClientConnectorDNSError():
            return _dns_cause(error.os_error)
        case _:
            return _system_cause(error.os_error) or "cannot connect"


def _tls_cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: certificate verify failed: {error.verify_message}"
    reason = getattr(error, "reason", None) or "handshake failed"
    return f"TLS: {reason.lower().replace('_', ' ')}"


def _dns_cause(error: OSError) -> str:
    if isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME:
        return "DNS: name not found"
    return f"DNS: {(error.strerror or 'lookup failed').lower()}"


def _bad_response(message: str) -> str:
    # aiohttp has one class for all of these; a test tells us should it word them differently.
    oversized = message.startswith(("Got more than", "Too many headers"))
    return HEADERS_TOO_LARGE if oversized else NOT_HTTP


def _system_cause(error: Exception) -> str:
    """What the operating system calls it: "connection refused", "no route to host"."""
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else ""
