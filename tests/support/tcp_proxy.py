"""A network that can fail: a TCP proxy between a worker and its server."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from typing import Any, Self

from support.server_process import free_port
from support.sites import serving
from support.until import in_time

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
CHUNK = 65536


class TcpProxy:
    """Forwards a port of 127.0.0.1 to another one, in a thread of its own. A context manager."""

    def __init__(self, target_port: int) -> None:
        self._relay = _Relay(target_port)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(serving(self._relay))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def port(self) -> int:
        """The port on which it listens, which never changes."""
        return self._relay.port

    def cut(self) -> None:
        """Reset all connections, and refuse new ones."""
        self._run(self._relay.cut())

    def freeze(self) -> None:
        """Forward nothing, not even the end of a connection, as if a cable were pulled."""
        self._run(self._relay.freeze())

    def heal(self) -> None:
        """Forward again. Data sent over frozen connections now arrives."""
        self._run(self._relay.heal())

    def _run(self, action: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(action, self._relay.loop).result()


class _Relay:
    """The proxy, inside its event loop."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self.port = free_port()

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        await self.heal()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task, connection in self._connections.items():
            connection.reset()
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def freeze(self) -> None:
        self._flows.clear()

    async def heal(self) -> None:
        self._flows.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer, self._flows)
        task = self.loop.create_task(connection.forward_to(self._target_port))
        self._connections[task] = connection
        task.add_done_callback(self._connections.pop)


class _Connection:
    """A client's connection, and the one to the target that belongs to it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._flows = flows
        self._writers = [writer]

    async def forward_to(self, port: int) -> None:
        """Forward bytes both ways until one end closes; then close the other."""
        try:
            await in_time("the network to be well again", self._flows.wait())
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            self._writers.append(writer)
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._pump(self._reader, writer))
                both_ways.create_task(self._pump(reader, self._writer))
        except* OSError:
            pass  # One end is closed, or the target refuses.
        finally:
            await self._close()

    def reset(self) -> None:
        """Reset both connections, so that both ends notice at once."""
        for writer in self._writers:
            with suppress(OSError):
                connected: socket.socket = writer.get_extra_info("socket")
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                await in_time("the network to be well again", self._flows.wait())
                writer.write(data)
                await writer.drain()
        await in_time("the network to be well again", self._flows.wait())
        raise ConnectionError("closed")  # Ends the other direction too.

    async def _close(self) -> None:
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with suppress(OSError):
                await writer.wait_closed()
