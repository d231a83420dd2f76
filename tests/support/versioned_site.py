"""A site whose pages change from day to day, and which supports conditional requests."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from aiohttp import web

from support.sites import Site, html


class Version(NamedTuple):
    """A page as it is today."""

    body: str = ""
    etag: str = ""
    modified: str = ""
    status: int = 200

    def is_known_to(self, request: web.BaseRequest) -> bool:
        """Whether the client has this version already. By RFC 9110, the date counts only if the
        request has no ETag, and `W/` makes no difference."""
        asked = request.headers.get("If-None-Match")
        if asked is not None:
            return bool(self.etag) and asked.removeprefix("W/") == self.etag.removeprefix("W/")
        return bool(self.modified) and request.headers.get("If-Modified-Since") == self.modified


class VersionedSite(Site):
    """The site. `pages` are its pages by path. It counts its answers."""

    def __init__(self, pages: dict[str, Version]) -> None:
        super().__init__(self._missing)
        self.pages = pages
        self.answers: Counter[tuple[str, int]] = Counter()
        """How often each page was answered with each status."""
        self.conditions: dict[str, set[str]] = {}
        """The names of the conditional headers in requests for each page."""

    async def _missing(self, path: str) -> web.Response:
        return html("no such page", 404)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        version = self.pages.get(request.path)
        if version is None:
            answer = await super()._respond(request)
        else:
            answer = self._answered(version, request)
        if request.path != "/robots.txt":
            self.answers[request.path, answer.status] += 1
        return answer

    def _answered(self, version: Version, request: web.BaseRequest) -> web.Response:
        asked = {name for name in request.headers if name.lower().startswith("if-")}
        self.conditions.setdefault(request.path, set()).update(asked)
        if version.is_known_to(request):
            return web.Response(status=304)
        answer = html(version.body, version.status)
        if version.etag:
            answer.headers["ETag"] = version.etag
        if version.modified:
            answer.headers["Last-Modified"] = version.modified
        return answer
