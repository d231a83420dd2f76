"""One connection to RabbitMQ and its channels. They are opened when needed, and reopened when they
are gone.

The library is aiormq, on which aio-pika is built. What aio-pika adds is not needed, and its
`connect_robust` not wanted: while that is disconnected, publishing hangs.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress

import aiormq
from aiormq.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import InvalidFrameError
from yarl import URL

from shoal.core.addresses import Address
from shoal.drivers.amqp.failures import translated
from shoal.errors import ConfigError
from shoal.version import __version__

CONNECT_S = 5.0
CLOSE_S = 3.0
HEARTBEAT_S = 20
"""After about this long, both ends notice that the network is gone."""

# The library also raises all errors that it logs.
logging.getLogger("aiormq").setLevel(logging.CRITICAL)


class AmqpConnection:
    """A connection with named channels. An error closes one of these, and all messages that were
    taken over it and not acknowledged are delivered again."""

    def __init__(self, address: Address, vhost: str) -> None:
        self._address = address
        self._vhost = vhost
        self._connection: AbstractConnection | None = None
        self._channels: dict[str, AbstractChannel] = {}
        self._opening = asyncio.Lock()
        self._closing = set[asyncio.Task[None]]()

    async def channel(self, name: str) -> AbstractChannel:
        """The channel of this name, which is opened if necessary. Raises Shoal's errors."""
        async with self._opening:
            with translated(self._address.shown):
                async with asyncio.timeout(CONNECT_S):
                    return await self._open(await self._connected(), name)

    @property
    def is_blocked(self) -> bool:
        """Whether the broker has announced that it accepts no messages at present."""
        if self._connection is None or self._connection.is_closed:
            return False
        unblocked = self._connection.ready()
        try:
            unblocked.send(None)  # Ends at once, unless the connection is blocked.
        except StopIteration:
            return False
        finally:
            unblocked.close()
        return True

    def drop(self) -> None:
        """Close the connection in the background: it does not answer, or is no longer needed."""
        connection, self._connection = self._connection, None
        self._channels.clear()
        if connection is not None and not connection.is_closed:
            task = asyncio.create_task(_close(connection))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Drop the connection and wait for its end. Not an error if the broker is gone."""
        self.drop()
        await asyncio.gather(*self._closing)

    async def _open(self, connection: AbstractConnection, name: str) -> AbstractChannel:
        known = self._channels.get(name)
        if known is None or known.is_closed:
            known = self._channels[name] = await connection.channel()
        return known

    async def _connected(self) -> AbstractConnection:
        if self._connection is None or self._connection.is_closed:
            self._channels.clear()
            self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> AbstractConnection:
        try:
            return await aiormq.connect(
                self._url(),
                context=_trusting(self._address),
                client_properties={"product": "Shoal", "version": __version__},
            )
        except InvalidFrameError:
            # The broker has sent the reason, but the library does not pass it on.
            raise ConfigError(
                f"{self._address.shown}: there is no virtual host {self._vhost!r}, or not for"
                " this user"
            ) from None

    def _url(self) -> URL:
        address = self._address
        (host, port), *_ = address.hosts
        return URL.build(
            scheme=address.scheme,
            user=address.user or "guest",
            password=address.password or "guest",
            host=host,
            port=port,
            # The library decodes the path, and knows only this one escape.
            path="/" + self._vhost.replace("/", "%2F"),
            encoded=False,
            query={"heartbeat": HEARTBEAT_S, "name": "shoal"},
        )


async def _close(connection: AbstractConnection) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await connection.close(ConnectionError("closed"))


def _trusting(address: Address) -> ssl.SSLContext | None:
    if address.scheme != "amqps":
        return None
    file = address.options.get("ca")
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise ConfigError(f"{address.shown}: no certificates in {file!r}: {error}") from None
