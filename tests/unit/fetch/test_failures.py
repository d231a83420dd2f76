"""Errors of the system, told to people."""

from __future__ import annotations

import errno
import ssl

import pytest

from shoal.fetch.http.failures import cause, is_own_fault


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
        (OSError(errno.EHOSTUNREACH, "Connect call failed"), "no route to host"),
        (OSError("Multiple exceptions"), "cannot connect"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "connection reset by peer"),
        (RuntimeError("File descriptor 9 is used by transport"), "request failed"),
    ],
)
def test_cause(error: Exception, expected: str) -> None:
    assert cause(error) == expected


@pytest.mark.parametrize(
    "code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENETDOWN]
)
def test_faults_of_our_own_machine(code: int) -> None:
    assert is_own_fault(OSError(code, "x"), is_ipv4=False)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ECONNREFUSED, "x"),
        OSError(errno.ENETUNREACH, "x"),  # It may be this host alone that has no route.
        OSError(errno.EHOSTUNREACH, "x"),
        OSError("Multiple exceptions"),
        TimeoutError(),
        ssl.SSLError(errno.ENOMEM, "x"),  # Numbers of OpenSSL's own.
    ],
)
def test_faults_of_others(error: OSError) -> None:
    assert not is_own_fault(error, is_ipv4=True)


def test_all_ports_are_in_use_or_there_is_no_ipv6() -> None:
    error = OSError(errno.EADDRNOTAVAIL, "x")
    assert is_own_fault(error, is_ipv4=True)
    assert not is_own_fault(error, is_ipv4=False)
