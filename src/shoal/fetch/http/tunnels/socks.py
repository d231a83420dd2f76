"""Tunnels through SOCKS5 proxies (RFC 1928), with user and password (RFC 1929)."""

from __future__ import annotations

from ipaddress import ip_address

from shoal.core.exits import Blame
from shoal.core.proxies import ProxyAddress
from shoal.errors import ExitFault
from shoal.fetch.http.tunnels.wire import Stage, Wire, no_sense

VERSION = 5
LOGIN_VERSION = 1
NO_LOGIN, LOGIN, NONE_FITS = 0, 2, 0xFF
CONNECT = 1
IPV4, NAME, IPV6 = 1, 3, 4
MAX_TEXT = 255

NOT_ALLOWED = 2
REPLIES = {
    1: "general failure",
    NOT_ALLOWED: "not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "timed out",
    7: "command not supported",
    8: "address type not supported",
}
UNREACHED = (1, 3, 4, 5, 6, 8)
"""Replies that say that this host could not be reached. They include a general failure, as some
proxies reply that for a name that does not exist."""


async def open_tunnel(
    wire: Wire, proxy: ProxyAddress, host: str, port: int, *, has_worked: bool
) -> None:
    """Have the proxy connect to a host, by name or address. Anything sent after that goes there.

    Raises ExitFault. An exit that `has_worked` before and forbids this host is not at fault.
    """
    await _log_in(wire, proxy)
    wire.stage = Stage.HOST
    await wire.send(bytes([VERSION, CONNECT, 0]) + _place(host) + port.to_bytes(2))
    version, reply, _, kind = await wire.exactly(4)
    if version != VERSION:
        raise no_sense()
    if reply:
        is_unreached = reply in UNREACHED or (reply == NOT_ALLOWED and has_worked)
        words = f"the proxy answered: {REPLIES.get(reply, f'error {reply}')}"
        raise ExitFault(words, Blame.PAIR if is_unreached else Blame.EXIT)
    await wire.exactly(await _length(wire, kind) + 2)  # The proxy's own outgoing address and port.


async def _log_in(wire: Wire, proxy: ProxyAddress) -> None:
    login = _login(proxy)
    methods = [NO_LOGIN, LOGIN] if login else [NO_LOGIN]
    await wire.send(bytes([VERSION, len(methods), *methods]))
    version, method = await wire.exactly(2)
    if version != VERSION or method not in (*methods, LOGIN, NONE_FITS):
        raise no_sense()
    if method not in methods:
        words = "it wants another way to log in" if login else "it wants a user and a password"
        raise ExitFault(f"the proxy does not let us in: {words}", Blame.EXIT)
    if method == LOGIN:
        await wire.send(login)
        _, status = await wire.exactly(2)
        if status:
            raise ExitFault("the proxy does not accept user and password", Blame.EXIT)


def _login(proxy: ProxyAddress) -> bytes:
    user, password = proxy.user.encode(), proxy.password.encode()
    if not user and not password:
        return b""
    if max(len(user), len(password)) > MAX_TEXT:
        raise ExitFault("the proxy's user or password is longer than SOCKS5 can say", Blame.EXIT)
    return bytes([LOGIN_VERSION, len(user)]) + user + bytes([len(password)]) + password


def _place(host: str) -> bytes:
    try:
        ip = ip_address(host)
    except ValueError:
        name = host.encode()
        return bytes([NAME, len(name)]) + name
    return bytes([IPV4 if ip.version == 4 else IPV6]) + ip.packed


async def _length(wire: Wire, kind: int) -> int:
    """The length of the address in a reply."""
    if kind == NAME:
        return (await wire.exactly(1))[0]
    if kind not in (IPV4, IPV6):
        raise no_sense()
    return 4 if kind == IPV4 else 16
