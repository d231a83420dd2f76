"""What all routes work with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from shoal.frontier.port import Frontier
from shoal.insight.advise.wanted import WantedWorkers
from shoal.results.port import Results
from shoal.web.access import Access, Role
from shoal.web.connections import AtOnce
from shoal.web.sampler import Sampler

MAX_EXPORTS = 8
"""Each is a file on this machine's disk until its client has it."""
EXPORTS_MADE = 2
MAX_SEEDINGS = 16


class Context:
    """The stores, who asks them now and then, and who is let in."""

    def __init__(
        self, *, frontier: Frontier, results: Results, access: Access, prefix: str, folder: Path
    ) -> None:
        self.frontier = frontier
        self.results = results
        self.access = access
        self.prefix = prefix
        self.folder = folder
        """Where shoal.toml is."""
        self.sampler = Sampler(frontier)
        self.wanted = WantedWorkers(frontier)
        self.exports = AtOnce(MAX_EXPORTS, "exports")
        self.making_exports = asyncio.Semaphore(EXPORTS_MADE)
        self.seedings = AtOnce(MAX_SEEDINGS, "streams of seeds")
        self.check_token: Callable[[web.Request, str], Role] = _nobody
        """Tells the role of a token; wrong ones are counted. Raises Problem."""

    def url(self, *parts: str, query: Mapping[str, str] | None = None) -> str:
        """An address of ours: each part is one step of the path, whatever is in it."""
        steps = "".join(f"/{quote(part, safe='')}" for part in parts) or "/"
        asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in (query or {}).items())
        return f"{self.prefix}{steps}{'?' if asked else ''}{asked}"


def _nobody(request: web.Request, given: str) -> Role:
    raise NotImplementedError
