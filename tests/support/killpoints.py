"""Kills a worker with SIGKILL at a named point of its work.

A test's spider file calls `set_trap` in every process that loads it. In workers this wraps the
methods that mark the stages of the pipeline, so Shoal itself contains nothing for it. The first
worker to pass the point for the n-th time leaves a marker file and dies.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from shoal.drivers.redis.link import RedisLink
from shoal.fetch.http.client import HttpFetcher
from shoal.fetch.http.connection import Connection
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.scripts import script
from shoal.frontier.values import Ask, Grant, Lease, Outcome
from shoal.results.sqlite.store import SqliteResults
from shoal.spider.page import Page
from support.processes import TESTS

POINT_VARIABLE = "KILL_POINT"
"""The variable that holds the point and the number: `saved:3`."""
MARKER = Path("killed")
"""A file in the folder of the commands that exists once a worker was killed."""

Applies = Callable[[tuple[Any, ...], Any], object]


class Place(NamedTuple):
    """A place before or after a method's call. `applies` decides by arguments and result whether a
    call counts."""

    owner: type
    method: str
    moment: str
    applies: Applies = lambda args, result: True


POINTS: Mapping[str, tuple[Place, ...]] = {
    "leased": (
        Place(RedisFrontier, "lease", "after", lambda args, grant: grant.leases),
        Place(RedisFrontier, "exchange", "after", lambda args, answer: answer[1].leases),
    ),
    "fetching": (Place(Connection, "on_headers_complete", "before"),),
    "fetched": (Place(HttpFetcher, "fetch", "after"),),
    "parsing": (Place(Page, "follow_all", "before"),),
    "saving": (Place(SqliteResults, "save", "before"),),
    "saved": (Place(SqliteResults, "save", "after"),),
    "finished": (Place(RedisFrontier, "finish", "after"),),
    "renewed": (Place(RedisFrontier, "renew", "after"),),
    "beaten": (Place(RedisFrontier, "beat", "after"),),
    "collecting": (Place(RedisFrontier, "add", "before"),),
    "collected": (
        Place(RedisLink, "run_known", "before", lambda args, _: args[1] is script("collected")),
    ),
}
"""The stages, in the order of the pipeline. "collecting": entries of the inbox were read but not
yet queued; "collected": they are queued but still in the inbox."""


def environment_of(point: str, number: int) -> dict[str, str]:
    """Environment variables that make one worker of a command die at a point."""
    return {POINT_VARIABLE: f"{point}:{number}", "PYTHONPATH": str(TESTS)}


def set_trap() -> None:
    """Wrap the methods that the environment names, in worker processes only."""
    point, _, number = os.environ.get(POINT_VARIABLE, "").partition(":")
    if not point or sys.argv[0] != "-c":
        return
    if point == "finished":  # exchange() would finish and lease in one step, with no point between.
        RedisFrontier.exchange = _exchange_in_two_steps  # type: ignore
    pass_by = _trap(int(number))
    for place in POINTS[point]:
        setattr(place.owner, place.method, _wrapped(place, pass_by))


async def _exchange_in_two_steps(
    frontier: RedisFrontier, crawl: str, outcomes: Sequence[Outcome], ask: Ask
) -> tuple[list[Lease], Grant]:
    return await frontier.finish(crawl, outcomes), await frontier.lease(crawl, ask)


def _trap(number: int) -> Callable[[], None]:
    left = number

    def pass_by() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            with suppress(FileExistsError):
                os.close(os.open(MARKER, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_by


def _wrapped(place: Place, pass_by: Callable[[], None]) -> Callable[..., Any]:
    inner: Callable[..., Any] = getattr(place.owner, place.method)

    def pass_at(moment: str, args: tuple[Any, ...], result: object) -> None:
        if place.moment == moment and place.applies(args, result):
            pass_by()

    @wraps(inner)
    async def call(*args: Any, **options: Any) -> Any:
        pass_at("before", args, None)
        result = await inner(*args, **options)
        pass_at("after", args, result)
        return result

    @wraps(inner)
    def call_at_once(*args: Any, **options: Any) -> Any:
        pass_at("before", args, None)
        return inner(*args, **options)

    return call if inspect.iscoroutinefunction(inner) else call_at_once
