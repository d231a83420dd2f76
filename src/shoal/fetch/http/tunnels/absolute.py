"""Plain http through an HTTP proxy without a tunnel: the request line has the absolute URL, and the
proxy forwards the request."""

from __future__ import annotations

import asyncio

import msgspec
from multidict import CIMultiDict

from shoal.core.proxies import ProxyAddress
from shoal.errors import ExitFault
from shoal.fetch.http.tunnels.connect import NOT_LET_IN, login_line, read_status, refused
from shoal.fetch.http.tunnels.wire import Wire
from shoal.fetch.http.ways import Origin

PROXY_LOGIN_NEEDED = 407

NOWHERE = "login.invalid"
"""A host that is guaranteed never to exist (RFC 6761)."""

PROBE_S = 3.0

_OWN_SERVER = "tinyproxy/"
"""How the Server header of tinyproxy's own pages starts; to the pages of hosts it adds a Via
header. Other proxies send nothing that a host could not send too."""


class Absolute(msgspec.Struct, frozen=True):
    """Rewrites requests to a host into the form that a proxy understands."""

    start: bytes
    """The start of the URL, up to its path."""
    login: bytes
    """The header line with user and password for the proxy. Empty if it has none."""

    @classmethod
    def of(cls, origin: Origin, proxy: ProxyAddress) -> Absolute:
        """Make one for requests to `origin` through `proxy`."""
        host = origin.written(with_port=origin.port != 80)
        return cls(f"http://{host}".encode(), login_line(proxy).encode())

    def rewritten(self, request: bytes) -> bytes:
        """The request with an absolute URL and the login."""
        method, _, rest = request.partition(b" ")
        line, _, rest = rest.partition(b"\r\n")
        return b"%b %b%b\r\n%b%b" % (method, self.start, line, self.login, rest)


def answer_of_proxy(status: int, headers: CIMultiDict[str]) -> ExitFault | None:
    """The fault that an answer means, if it is certainly the proxy's own. None: maybe the host's.

    Most proxies report a host they could not reach (502, 503, 504) in words that the host itself
    might use, so these answers count as the host's.
    """
    is_own = headers.get("Server", "").startswith(_OWN_SERVER) and "Via" not in headers
    if status == PROXY_LOGIN_NEEDED or (is_own and status >= 400):
        # A proxy may forbid this one host only, so several hosts have to agree.
        return refused(status, "the request", has_worked=True)
    return None


def is_kept(headers: CIMultiDict[str]) -> bool:
    """Whether a proxy says that it keeps the connection open after an answer.

    Some proxies close it without saying so, and a request sent in that moment would be lost.
    """
    said = headers.get("Proxy-Connection") or headers.get("Connection") or ""
    return "keep-alive" in said.lower()


async def asks_for_login(wire: Wire) -> bool:
    """Whether a proxy requires user and password, found out by a request without them.

    A proxy that does not require them would forward them to the host like any other header.
    """
    ask = f"GET http://{NOWHERE}/ HTTP/1.1\r\nHost: {NOWHERE}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(PROBE_S):
            await wire.send(ask.encode())
            return await read_status(wire) in NOT_LET_IN
    except (ExitFault, TimeoutError):
        return False
