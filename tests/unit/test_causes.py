"""Errors of libraries, told to people."""

from __future__ import annotations

import errno
import socket
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from shoal.fetch.causes import cause

KEY = ConnectionKey("shop.example", 443, True, True, None, None, None)


def expired_certificate() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] ... (_ssl.c:1006)")
    error.verify_message = "certificate has expired"
    return error


def handshake_failure() -> ssl.SSLError:
    error = ssl.SSLError(1, "[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] ... (_ssl.c:1006)")
    error.reason = "SSLV3_ALERT_HANDSHAKE_FAILURE"
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            aiohttp.ClientConnectorCertificateError(KEY, expired_certificate()),
            "TLS: certificate verify failed: certificate has expired",
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, handshake_failure()),
            "TLS: sslv3 alert handshake failure",
        ),
        (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError()), "TLS: handshake failed"),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NONAME, "x")),
            "DNS: name not found",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NODATA, "x")),
            "DNS: name not found",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_AGAIN, "Not Now")),
            "DNS: not now",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "Connect call failed")),
            "no route to host",
        ),
        (aiohttp.ClientConnectorError(KEY, OSError("Multiple exceptions")), "cannot connect"),
        (aiohttp.ClientOSError(errno.ECONNRESET, "x"), "connection reset by peer"),
        (aiohttp.ServerDisconnectedError(), "server closed the connection"),
        (aiohttp.ClientConnectionResetError("x"), "server closed the connection"),
        (RuntimeError("File descriptor 9 is used by transport"), "request failed"),
    ],
)
def test_cause(error: Exception, expected: str) -> None:
    assert cause(error) == expected
