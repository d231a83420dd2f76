"""Makes connections through exits: through a proxy, or from one address of this machine.

Decides who is to blame for a failure (see `core.exits.Blame`), and what a proxy is told. With the
guard on, a host's name is always looked up and checked here, even if a proxy will connect to it. A
proxy on the public internet is still given the name, and resolves it as its own region does. A
proxy inside the own network may reach private hosts there: it is given the address that was
checked.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable

from aiohappyeyeballs import start_connection

from shoal.core.exits import Blame
from shoal.core.networks import is_public
from shoal.core.proxies import ProxyAddress
from shoal.errors import ExitFault, FetchError
from shoal.fetch.guard import only_public
from shoal.fetch.http.connection import Connection
from shoal.fetch.http.dns import AddressInfo, Resolver
from shoal.fetch.http.failures import cause, is_own_fault
from shoal.fetch.http.track_record import TrackRecord
from shoal.fetch.http.tunnels import connect, socks
from shoal.fetch.http.tunnels.absolute import Absolute, asks_for_login
from shoal.fetch.http.tunnels.wire import Stage, Wire
from shoal.fetch.http.ways import Origin, Way

SECOND_ADDRESS_AFTER_S = 0.25
"""If the first address of a name does not answer by then, the next one is tried in parallel."""

Handshake = Callable[[socket.socket, Origin], Awaitable[Connection]]
"""Turns a socket that leads to an origin into a connection, with TLS if the origin uses it."""


class ExitConnector:
    """Makes connections through exits, and remembers what it learns about them."""

    def __init__(
        self, resolver: Resolver, handshake: Handshake, *, is_guarded: bool, limit_s: float
    ) -> None:
        """`limit_s` is the time for everything before a request: DNS, TCP, handshakes."""
        self._resolver = resolver
        self._handshake = handshake
        self._is_guarded = is_guarded
        self._limit_s = limit_s
        self._record = TrackRecord()
        self._asks_login: dict[tuple[str, int], bool] = {}
        """Whether the proxy at a host and port asks for a login: see `asks_for_login`."""

    async def connect(self, way: Way, proxy: ProxyAddress) -> Connection:
        """Connect through an exit. Raises FetchError, and OSError if this machine is at fault."""
        wire = Wire()
        try:
            async with asyncio.timeout(self._limit_s):
                if proxy.scheme == "bind":
                    return await self._from_address(wire, way, proxy)
                return await self._through_proxy(wire, way, proxy)
        except TimeoutError as error:
            raise wire.counted(wire.too_slow(self._limit_s)) from error
        except FetchError as error:
            wire.counted(error)
            raise
        finally:
            wire.close()

    # Through a proxy

    async def _through_proxy(self, wire: Wire, way: Way, proxy: ProxyAddress) -> Connection:
        checked = await self._checked(way[1])
        await self._reach(wire, proxy)
        is_named = not self._is_guarded or is_public(wire.sock.getpeername()[0])
        absolute = None
        if is_named and await self._is_absolute(wire, way, proxy):
            absolute = Absolute.of(way[1], proxy)
        else:
            await self._tunnel(wire, way, proxy, way[1].host if is_named else checked)
        connection = await self._established(wire, way)
        connection.absolute = absolute
        connection.address = ""  # The address of a proxy is never shown.
        connection.count_before(wire.sent, wire.received)
        return connection

    async def _checked(self, origin: Origin) -> str:
        """A public address of the host; empty without the guard. Raises Refused if it has none."""
        if not self._is_guarded:
            return ""
        found = only_public(origin.host, await self._resolver.resolve(origin.host, origin.port))
        # More proxies can reach IPv4 than IPv6.
        first = min(found, key=lambda info: info[0] != socket.AF_INET)
        return str(first[4][0])

    async def _reach(self, wire: Wire, proxy: ProxyAddress) -> None:
        """Connect to the proxy. The user chose it, so it may have a private address."""
        wire.stage = Stage.PROXY
        is_ipv4 = False
        try:
            addresses = await self._resolver.resolve(proxy.host, proxy.port)
            is_ipv4 = all(family == socket.AF_INET for family, *_ in addresses)
            wire.lead(
                await start_connection(addresses, happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S)
            )
        except FetchError as error:
            raise ExitFault(f"proxy: {error}", Blame.EXIT) from error
        except OSError as error:
            if is_own_fault(error, is_ipv4=is_ipv4):
                raise
            raise ExitFault(f"proxy: {cause(error)}", Blame.EXIT) from error

    async def _is_absolute(self, wire: Wire, way: Way, proxy: ProxyAddress) -> bool:
        """Whether requests are sent to the proxy itself with absolute URLs, not through a tunnel.

        A proxy with user and password is probed first: see `asks_for_login`.
        """
        route, origin = way
        if proxy.scheme != "http" or origin.is_tls or route.tunnels_all:
            return False
        if not proxy.user and not proxy.password:
            return True
        place = proxy.host, proxy.port
        if place not in self._asks_login:
            self._asks_login[place] = await self._probe_login(wire, proxy)
        return self._asks_login[place]

    async def _probe_login(self, wire: Wire, proxy: ProxyAddress) -> bool:
        probe = Wire()
        try:
            await self._reach(probe, proxy)
            return await asks_for_login(probe)
        finally:
            probe.close()
            wire.sent += probe.sent
            wire.received += probe.received

    async def _tunnel(self, wire: Wire, way: Way, proxy: ProxyAddress, host: str) -> None:
        route, origin = way
        worked = self._record.has_worked(route.name)
        if proxy.scheme == "http":
            await connect.open_tunnel(wire, proxy, origin.written(host), has_worked=worked)
        else:
            await socks.open_tunnel(wire, proxy, host, origin.port, has_worked=worked)
        self._record.worked(route.name)

    async def _established(self, wire: Wire, way: Way) -> Connection:
        route, origin = way
        wire.stage = Stage.AWAY
        try:
            connection = await self._handshake(wire.hand_over(), origin)
        except ssl.SSLCertVerificationError as error:
            raise self._record.unverified(route.name, origin, cause(error)) from error
        except (OSError, RuntimeError) as error:
            if isinstance(error, OSError) and is_own_fault(error, is_ipv4=True):
                raise
            raise FetchError(cause(error)) from error
        if origin.is_tls:
            self._record.verified(route.name, origin)
        return connection

    # From an address of this machine

    async def _from_address(self, wire: Wire, way: Way, here: ProxyAddress) -> Connection:
        origin = way[1]
        found = await self._resolver.resolve(origin.host, origin.port)
        if self._is_guarded:
            found = only_public(origin.host, found)
        family = socket.AF_INET6 if ":" in here.host else socket.AF_INET
        addresses = [info for info in found if info[0] == family]
        if not addresses:
            raise ExitFault("the host has no address of the exit's kind", Blame.PAIR)
        wire.stage = Stage.HOST
        wire.lead(await self._bound(addresses, here))
        wire.stage = Stage.AWAY
        return await self._handshake(wire.hand_over(), origin)

    async def _bound(self, addresses: list[AddressInfo], here: ProxyAddress) -> socket.socket:
        family, kind, protocol, *_ = addresses[0]
        own: AddressInfo = family, kind, protocol, "", (here.host, 0)
        try:
            return await start_connection(
                addresses, local_addr_infos=[own], happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S
            )
        except OSError as error:
            if not _is_own_address(own):
                words = "the address to leave from is none of this machine's"
                raise ExitFault(words, Blame.EXIT) from error
            if error.errno == errno.EADDRINUSE:  # All ports of this address are in use.
                raise OSError(errno.EADDRNOTAVAIL, "") from error
            if is_own_fault(error, is_ipv4=family == socket.AF_INET):
                raise
            raise ExitFault(cause(error), Blame.PAIR) from error


def _is_own_address(own: AddressInfo) -> bool:
    with socket.socket(own[0], own[1], own[2]) as probe:
        try:
            probe.bind(own[4])
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True
