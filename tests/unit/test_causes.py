"""Errors of the system, told to people."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from shoal.fetch.causes import cause


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
        (expired_certificate(), "TLS: certificate verify failed: certificate has expired"),
        (handshake_failure(), "TLS: sslv3 alert handshake failure"),
        (ssl.SSLError(), "TLS: handshake failed"),
        (socket.gaierror(socket.EAI_NONAME, "x"), "DNS: name not found"),
        (socket.gaierror(socket.EAI_NODATA, "x"), "DNS: name not found"),
        (socket.gaierror(socket.EAI_AGAIN, "Not Now"), "DNS: not now"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed"), "no route to host"),
        (OSError("Multiple exceptions"), "cannot connect"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "connection reset by peer"),
        (RuntimeError("File descriptor 9 is used by transport"), "request failed"),
    ],
)
def test_cause(error: Exception, expected: str) -> None:
    assert cause(error) == expected
