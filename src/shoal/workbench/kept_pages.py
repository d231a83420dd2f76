"""Pages that need not be fetched again: those of a small cache, and those of an archive."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from multidict import CIMultiDict

from shoal.archive.port import RawPage
from shoal.core.identities import NO_SESSION
from shoal.core.task import Task
from shoal.errors import ConfigError, FetchError
from shoal.fetch.port import Fetcher, Request, Response

MAX_PAGES = 200
MAX_BYTES = 100 * 2**20
"""The limits of the cache. The oldest pages are deleted first."""
_FAILED = 400


class _Kept(msgspec.Struct):
    """A response in the cache."""

    url: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


def cache_folder() -> Path:
    """The folder of this user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "shoal" / "pages"


class CachingFetcher(Fetcher):
    """Fetches pages that are not in the cache. Errors and pages of accounts are not kept."""

    def __init__(self, folder: Path, inner: Fetcher) -> None:
        self.user_agent = inner.user_agent
        self.kept_s: float | None = None
        """How old the last response is. None: it is new."""
        self._folder = folder
        self._inner = inner

    async def fetch(self, request: Request) -> Response:
        """The response in the cache, or a new one."""
        task = request.task
        is_private = request.cookies or task.session not in (None, NO_SESSION)
        file = self._folder / _name_of(task)
        self.kept_s = None
        if not is_private and (found := _read(file)) is not None:
            kept, at = found
            self.kept_s = max(time.time() - at, 0.0)
            return Response(task.url, kept.status, CIMultiDict(kept.headers), kept.body, 0.0)
        response = await self._inner.fetch(request)
        if not is_private and response.status < _FAILED:
            self._keep(file, response)
        return response

    async def close(self) -> None:
        """Close the connections."""
        await self._inner.close()

    def _keep(self, file: Path, response: Response) -> None:
        kept = _Kept(
            response.url,
            response.status,
            [(_text(name), _text(value)) for name, value in response.headers.items()],
            response.body,
        )
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = file.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(_encode(kept))
            unfinished.replace(file)
        except OSError as error:
            raise ConfigError(f"--cache: {self._folder}: {error.strerror}") from None
        with suppress(OSError):  # Another process may be doing the same.
            _throw_away(self._folder)


def _name_of(task: Task) -> str:
    """The file name for a task. Headers do not count: hooks may write the time into them."""
    asked = "\n".join((task.method, task.url, task.body or ""))
    return hashlib.blake2b(asked.encode("utf-8", "replace"), digest_size=16).hexdigest() + ".page"


def _read(file: Path) -> tuple[_Kept, float] | None:
    """The cached response, and the time when it was kept."""
    try:
        return _decode(file.read_bytes()), file.stat().st_mtime
    except (OSError, msgspec.MsgspecError):
        return None


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


def _throw_away(folder: Path) -> None:
    """Delete all but the newest pages."""
    left, room = MAX_PAGES, MAX_BYTES
    sizes = [(file.stat(), file) for file in folder.iterdir()]
    for stat, file in sorted(sizes, key=lambda each: each[0].st_mtime, reverse=True):
        left, room = left - 1, room - stat.st_size
        if left < 0 or room < 0:
            file.unlink(missing_ok=True)


class ArchivedPage(Fetcher):
    """Gives the one page that was taken from an archive."""

    def __init__(self, raw: RawPage) -> None:
        self._raw = raw

    async def fetch(self, request: Request) -> Response:
        """The archived page. Raises FetchError for any other."""
        if request.task.url != self._raw.task.url:
            raise FetchError(f"only {self._raw.task.url} was taken from the archive")
        headers = CIMultiDict(self._raw.headers)
        return Response(request.task.url, self._raw.status, headers, self._raw.body, 0.0)

    async def close(self) -> None:
        """Nothing is open."""


OpenFetcher = Callable[[], Fetcher]
"""Must be called while the event loop runs."""
