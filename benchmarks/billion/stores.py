"""Runs a trial on Redis and on SQLite, and measures the size and the cost of the frontier."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import redis

from benchmarks.billion.model import course_of
from benchmarks.billion.trial import Clock, Seen, Trial
from benchmarks.billion.web import Web
from benchmarks.links import collect_seldom
from benchmarks.redis_server import RedisServer, redis_server
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.runtime.eventloop import run

REWRITE_AT = 0.9
"""The append-only file is rewritten when this share of the crawl is done."""

Progress = Callable[[int], None]


class Rewrite(msgspec.Struct, kw_only=True):
    """The cost of rewriting the append-only file during the crawl."""

    stall_ms_per_gb: float
    """How long the server stopped for the fork."""
    copied_share: float
    """The share of the data that was copied, because the crawl changed it meanwhile."""
    seconds: float


class Figures(Seen, kw_only=True):
    """What a trial measured."""

    store: str
    model_s: float
    off: float
    """How much longer the crawl took than by the model: 0.05 means 5 %."""
    bytes_per_url: float
    """All memory or disk of the frontier, per known URL."""
    us: float
    """Time of the frontier per page, client included."""
    server_us: float = 0.0
    """CPU of Redis, per page."""
    known_bytes: float = 0.0
    """The part of `bytes_per_url` that the set of known URLs takes."""
    rewrite: Rewrite | None = None


def on_redis(web: Web, progress: Progress) -> Figures:
    """Run a trial on a new Redis with an append-only file."""
    collect_seldom()
    with redis_server(durable=True) as server:
        empty, before = server.used_bytes(), server.load()
        rewriting = _Rewriting(server, web, progress)
        clock = Clock()
        seen = run(_crawl(web, RedisFrontier(server.address, clock), clock, rewriting.progress))
        load = server.load() - before
        rewrite = rewriting.cost()
        used = server.used_bytes() - empty
        known = server.freed_without("*:seen:*")
        return _figures(
            web,
            seen,
            store="Redis",
            bytes_per_url=used / seen.urls,
            server_us=load.cpu_s / seen.pages * 1e6,
            known_bytes=known / seen.urls,
            rewrite=rewrite,
        )


def on_sqlite(web: Web, progress: Progress) -> Figures:
    """Run a trial on a new file."""
    collect_seldom()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        file, clock = Path(folder) / "frontier.db", Clock()
        seen = run(_crawl(web, SqliteFrontier(file, clock), clock, progress))
        # The frontier is closed, so SQLite has merged its write-ahead log into the file.
        return _figures(web, seen, store="SQLite", bytes_per_url=file.stat().st_size / seen.urls)


STORES = {"redis": on_redis, "sqlite": on_sqlite}


async def _crawl(
    web: Web, frontier: RedisFrontier | SqliteFrontier, clock: Clock, progress: Progress
) -> Seen:
    try:
        return await Trial(web, frontier, clock).run(progress)
    finally:
        await frontier.close()


def _figures(web: Web, seen: Seen, **measured: object) -> Figures:
    model_s = course_of(web).seconds
    own = {"model_s": model_s, "off": seen.seconds / model_s - 1, "us": seen.us_per_page}
    return msgspec.convert(msgspec.to_builtins(seen) | own | msgspec.to_builtins(measured), Figures)


class _Rewriting:
    """Starts one rewrite of the append-only file during the crawl, and measures its cost."""

    def __init__(self, server: RedisServer, web: Web, progress: Progress) -> None:
        self._server = server
        self._from = web.pages * REWRITE_AT
        self._progress = progress
        self._bytes = 0

    def progress(self, pages: int) -> None:
        """Pass the progress on, and start the rewrite when it is time."""
        self._progress(pages)
        if pages >= self._from and not self._bytes:
            self._bytes = self._server.used_bytes()
            redis.Redis(port=self._server.port).bgrewriteaof()

    def cost(self) -> Rewrite:
        """Wait for the end of the rewrite, and return its cost."""
        while (info := self._server.info("persistence"))["aof_rewrite_in_progress"]:
            time.sleep(0.1)
        return Rewrite(
            stall_ms_per_gb=self._server.info("stats")["latest_fork_usec"] / self._bytes * 1e6,
            copied_share=info["aof_last_cow_size"] / self._bytes,
            seconds=info["aof_last_rewrite_time_sec"],
        )
