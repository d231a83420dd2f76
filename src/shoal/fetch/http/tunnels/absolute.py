"""Plain http by an HTTP proxy, without a tunnel: the request line has the whole URL, and the proxy
passes the request on."""

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
"""No such host exists, nor will (RFC 6761)."""

PROBE_S = 3.0

_OWN_SERVER = "tinyproxy/"
"""What tinyproxy signs its own pages with. To those of hosts it adds a Via. Other proxies sign
nothing that a host could not sign too."""


class Absolute(msgspec.Struct, frozen=True):
    """What makes requests to a host such that a proxy understands them."""

    start: bytes
    """Of the URL, up to its path."""
    login: bytes
    """The header that lets us in."""

    @classmethod
    def of(cls, origin: Origin, proxy: ProxyAddress) -> Absolute:
        """For requests to a host by a proxy."""
        host = origin.written(with_port=origin.port != 80)
        return cls(f"http://{host}".encode(), login_line(proxy).encode())

    def rewritten(self, request: bytes) -> bytes:
        """A request as the proxy needs it."""
        method, _, rest = request.partition(b" ")
        line, _, rest = rest.partition(b"\r\n")
        return b"%b %b%b\r\n%b%b" % (method, self.start, line, self.login, rest)


def answer_of_proxy(status: int, headers: CIMultiDict[str]) -> ExitFault | None:
    """What an answer means that is certainly the proxy's own. None: it may be the host's.

    That it could not reach the host (502, 503, 504), most proxies say in words that a host might
    use as well.
    """
    is_own = headers.get("Server", "").startswith(_OWN_SERVER) and "Via" not in headers
    if status == PROXY_LOGIN_NEEDED or (is_own and status >= 400):
        # What it forbids, it may forbid for this host alone: several hosts have to agree.
        return refused(status, "the request", has_worked=True)
    return None


def is_kept(headers: CIMultiDict[str]) -> bool:
    """Whether a proxy keeps the connection after an answer. Some close it without a word, and the
    next request would be lost in the same moment: so it is to say that it does not."""
    said = headers.get("Proxy-Connection") or headers.get("Connection") or ""
    return "keep-alive" in said.lower()


async def asks_for_login(wire: Wire) -> bool:
    """Whether a proxy lets in only those with user and password, by what it says to somebody
    without. One that does not would pass these on to the host, as any other header."""
    ask = f"GET http://{NOWHERE}/ HTTP/1.1\r\nHost: {NOWHERE}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(PROBE_S):
            await wire.send(ask.encode())
            return await read_status(wire) in NOT_LET_IN
    except (ExitFault, TimeoutError):
        return False
