"""The objects that all routes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from shoal.config import Settings
from shoal.frontier.port import Frontier
from shoal.insight.advise.wanted import WantedWorkers
from shoal.results.port import Results
from shoal.web.access import Access, Role
from shoal.web.connections import ConcurrencyLimit
from shoal.web.sampler import Sampler

MAX_EXPORTS = 8
"""Exports at the same time. Each is a file on this machine's disk until its client has it."""
EXPORTS_MADE = 2
"""Exports whose files are being written at the same time. The others wait for their turn."""
MAX_SEEDINGS = 16
MAX_PAGES = 4
"""Raw pages sent at the same time. Each is in memory until its client has it."""


class Context:
    """The stores, cached queries, access control and limits that handlers of routes use."""

    def __init__(
        self,
        *,
        settings: Settings,
        frontier: Frontier,
        results: Results,
        access: Access,
        prefix: str,
        folder: Path,
    ) -> None:
        self.settings = settings
        self.frontier = frontier
        self.results = results
        self.access = access
        self.prefix = prefix
        self.folder = folder
        """The folder of shoal.toml."""
        self.sampler = Sampler(frontier)
        self.wanted = WantedWorkers(frontier)
        self.exports = ConcurrencyLimit(MAX_EXPORTS, "exports")
        self.making_exports = asyncio.Semaphore(EXPORTS_MADE)
        self.seedings = ConcurrencyLimit(MAX_SEEDINGS, "streams of seeds")
        self.pages = ConcurrencyLimit(MAX_PAGES, "downloads of pages")
        self.check_token: Callable[[web.Request, str], Role] = _nobody
        """Returns a token's role, and counts wrong tokens. Raises Problem. Set by the server."""

    def url(self, *parts: str, query: Mapping[str, str] | None = None) -> str:
        """A path on this server. Each part becomes one quoted segment, whatever it contains."""
        steps = "".join(f"/{quote(part, safe='')}" for part in parts) or "/"
        asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in (query or {}).items())
        return f"{self.prefix}{steps}{'?' if asked else ''}{asked}"


def _nobody(request: web.Request, given: str) -> Role:
    raise NotImplementedError
