"""The web server as a service: listens until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec
from aiohttp import web

from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.fleet.stores import stores_at
from shoal.frontier.port import Frontier
from shoal.results.port import Results
from shoal.web.access import VARIABLE, Access, read_tokens
from shoal.web.api import API
from shoal.web.connections import Connections
from shoal.web.context import Context
from shoal.web.guard import HEADERS, Guard, add_headers
from shoal.web.listening import DEFAULT_LISTEN, HostNames, Listen, listen_of, prefix_of
from shoal.web.problems import Problem, problem_response
from shoal.web.routes import MAX_BODY_BYTES, Route, add_routes
from shoal.web.screens import SCREENS, Pages

SHUTDOWN_S = 3.0
"""How long requests under way have to end when the server stops."""
BACKLOG = 1024
"""Connections that the system queues before they are accepted. With a short queue, clients in a
burst would have to try again."""

log = logging.getLogger("shoal")
_of_http = logging.getLogger("shoal.http")
_of_http.setLevel(logging.CRITICAL)
"""Silenced, because aiohttp logs a traceback for all input that is not valid HTTP."""


class WebOptions(msgspec.Struct, kw_only=True):
    """The options of `shoal serve` for the web server."""

    listen: str | None = None
    """None: the default address, or if that is taken, none at all."""
    token_file: Path | None = None
    prefix: str = ""
    allow_hosts: Sequence[str] = ()


class WebServer:
    """Serves the API and the dashboard of one frontier. It opens its own connections to the stores,
    so that requests never delay the coordinator."""

    def __init__(self, settings: Settings, options: WebOptions, more: Sequence[Route] = ()) -> None:
        """`more` are routes of other services. Raises ConfigError for wrong options or tokens, and
        if others could reach the server without a token."""
        self._settings = settings
        self._is_asked_for = options.listen is not None
        self._listen = listen_of(options.listen or DEFAULT_LISTEN)
        self._prefix = prefix_of(options.prefix)
        self._names = HostNames(self._listen, options.allow_hosts)
        self._access = Access(read_tokens(options.token_file, os.environ))
        self._more = more
        self._stopping = asyncio.Event()
        if self._access.is_open and not self._listen.is_loopback:
            raise ConfigError(
                f"--listen {self._listen.shown}: others could reach it, so it needs a token:"
                f" --token-file or {VARIABLE}"
            )

    def drain(self) -> None:
        """Stop listening, let answers under way end, and stop."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until told to stop. Raises ConfigError if the given address cannot be used."""
        async with stores_at(self._settings, archive=False, check=False) as stores:
            runner = web.AppRunner(
                self._app(stores.frontier, stores.results),
                handler_cancellation=True,
                shutdown_timeout=SHUTDOWN_S,
            )
            await runner.setup()
            listener = None
            try:
                listener = await self._listening(runner)
                if listener is not None:
                    log.info("listening on http://%s%s/", self._place(listener), self._prefix)
                await self._stopping.wait()
            finally:
                if listener is not None:
                    listener.close()
                await runner.cleanup()

    async def _listening(self, runner: web.AppRunner) -> asyncio.Server | None:
        listen, loop = self._listen, asyncio.get_running_loop()
        server = cast(web.Server, runner.server)
        connections = Connections(server, HEADERS, access_log=None, logger=_of_http)
        try:
            return await loop.create_server(
                connections, listen.host, listen.port, backlog=BACKLOG, reuse_address=True
            )
        except (OSError, UnicodeError) as error:
            why = f"cannot listen on {listen.shown}: {_reason(error)}"
            if self._is_asked_for:
                raise ConfigError(why) from None
            # Most likely another coordinator on this machine has it. Schedules still need this one.
            log.warning("%s; no dashboard and no API here (see --listen)", why)
            return None

    def _place(self, listener: asyncio.Server) -> str:
        port = self._listen.port or listener.sockets[0].getsockname()[1]
        return Listen(self._listen.host, port).shown

    def _app(self, frontier: Frontier, results: Results) -> web.Application:
        context = Context(
            settings=self._settings,
            frontier=frontier,
            results=results,
            access=self._access,
            prefix=self._prefix,
            folder=Path(),
        )
        pages = Pages(context)

        def show(request: web.Request, problem: Problem) -> web.Response:
            is_for_people = "text/html" in request.headers.get("Accept", "")
            path = request.path.removeprefix(self._prefix)
            if is_for_people and not path.startswith(("/api/", "/live/")):
                return pages.problem(request, problem)
            return problem_response(problem)

        guard = Guard(self._access, self._names, show)
        context.check_token = guard.checked_token
        app = web.Application(middlewares=[guard.middleware()], client_max_size=MAX_BODY_BYTES)
        app.on_response_prepare.append(add_headers)
        add_routes(app, context, [*API, *SCREENS, *self._more])
        pages.add_static(app)
        return app


def _reason(error: OSError | UnicodeError) -> str:
    """Why an address cannot be listened on, in the system's words: asyncio repeats the address."""
    if isinstance(error, UnicodeError):
        return "that is no host name"
    if error.errno is None or error.errno < 0:  # Errors of name resolution, with their own words.
        return error.strerror or str(error)
    return os.strerror(error.errno)
