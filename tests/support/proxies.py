"""Proxies on this machine: real ones (tinyproxy for http, microsocks for socks5) and a gateway.

    with TinyProxy(folder, "127.0.0.11") as proxy: ...

Each listens on a free port of 127.0.0.1. Its requests come from an address of its own, which may be
any of 127.0.0.0/8. A proxy with a user accepts no others.
"""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from pathlib import Path

from shoal.core.proxies import ProxyAddress, ProxyScheme
from support.own_proxies import OwnProxy, asked, pass_on
from support.server_process import ServerProcess, program
from support.until import LIMIT_S


def sources(count: int) -> list[str]:
    """Source addresses for `count` exits: 127.0.0.11, 127.0.0.21, ..."""
    return [f"127.0.{number // 20}.{10 * (number % 20) + 11}" for number in range(count)]


class ProxyServer(ServerProcess):
    """A proxy in a process of its own."""

    scheme: ProxyScheme = "http"

    def __init__(self, folder: Path, source: str, *, user: str = "", password: str = "") -> None:
        """`source` is the address that its requests come from."""
        super().__init__(folder)
        self.source = source
        self.user = user
        self.password = password

    @property
    def address(self) -> ProxyAddress:
        """The proxy's address, with its login."""
        return ProxyAddress(self.scheme, "127.0.0.1", self.port, self.user, self.password)

    @property
    def url(self) -> str:
        """The proxy's address with its login, as users write it."""
        login = f"{self.user}:{self.password}@" if self.user else ""
        return f"{self.scheme}://{login}127.0.0.1:{self.port}"

    @property
    def _log_file(self) -> Path:
        return self._folder / f"{self.scheme}-{self.source}.log"

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), LIMIT_S):
            return True
        return False


class TinyProxy(ProxyServer):
    """tinyproxy. It answers 401 to a wrong password, and 500 if the target refuses."""

    def _command(self) -> list[str]:
        lines = [
            *(f"Port {self.port}", "Listen 127.0.0.1", f"Bind {self.source}"),
            *("MaxClients 500", "Timeout 600", "LogLevel Connect"),
            *([f"BasicAuth {self.user} {self.password}"] if self.user else []),
        ]
        configuration = self._folder / f"tinyproxy-{self.source}.conf"
        configuration.write_text("\n".join(lines) + "\n")
        return [program("tinyproxy"), "-d", "-c", str(configuration)]


class MicroSocks(ProxyServer):
    """microsocks."""

    scheme = "socks5"

    def _command(self) -> list[str]:
        login = ["-u", self.user, "-P", self.password] if self.user else []
        place = ["-i", "127.0.0.1", "-p", str(self.port), "-b", self.source]
        return [program("microsocks"), *login, *place]


class Gateway(OwnProxy):
    """A provider's gateway: one address, with the exit given in the user name.

    The user is `customer-key-sessid-SESSION`. Each session has a source address of its own. Without
    a session, every connection has another source address.
    """

    def __init__(self, count: int, password: str = "secret") -> None:
        """`count` is the number of source addresses."""
        super().__init__()
        self.sources = sources(count)
        self.password = password
        self.users: list[str] = []
        """The user of each connection."""
        self._taken: dict[str, str] = {}

    @property
    def endpoint(self) -> str:
        """The gateway's address with a placeholder for the session, as users write it."""
        return f"http://customer-key-sessid-{{session}}:{self.password}@127.0.0.1:{self.port}"

    def session(self, name: str = "") -> ProxyAddress:
        """The gateway's address with the login of a session."""
        user = f"customer-key-sessid-{name}" if name else "customer-key"
        return ProxyAddress("http", "127.0.0.1", self.port, user, self.password)

    def source_of(self, name: str) -> str:
        """The source address of a session. A new session gets the next address."""
        if name not in self._taken:
            self._taken[name] = self.sources[len(self._taken) % len(self.sources)]
        return self._taken[name]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ask = await asked(reader)
        user, password = ask.login
        if password != self.password:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        self.users.append(user)
        session = re.search(r"-sessid-(\w+)", user)
        source = self.source_of(session[1] if session else f"connection {len(self.users)}")
        await pass_on(ask, reader, writer, source)
