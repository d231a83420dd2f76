"""Ways to wait: for an event with a time limit, for a store that is away, for resources of this
machine; and jitter for retries."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shoal.errors import OwnFault, ShoalError, StorageBusy

T = TypeVar("T")

RETRY_FIRST_S = 0.1
RETRY_LIMIT_S = 5.0

OWN_FAULT_PAUSE_S = 2.0
"""How long to wait while this machine lacks resources. Trying at once would fail in the same way.
"""
WARN_EVERY_S = 60.0

log = logging.getLogger("shoal")


class _Outage:
    """A period in which calls of this process wait for a store."""

    def __init__(self) -> None:
        self.waiting = 0
        self.answered = asyncio.Event()
        """Set once the store has answered any call, so that the others try again at once."""


_outages: dict[str, _Outage] = {}


def awaited() -> list[str]:
    """The names of the stores that calls of this process are waiting for."""
    return list(_outages)


async def wait_for_event(event: asyncio.Event, timeout_s: float | None) -> None:
    """Return when the event is set or the time is over, whichever comes first."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return


async def patiently(what: str, call: Callable[[], Awaitable[T]]) -> T:
    """Call again and again until the store answers.

    However many calls of this process wait for a store, the log says only once that it is away,
    and only once, when no call waits any more, that it is back.
    """
    try:
        answer = await call()
    except StorageBusy as error:
        if what not in _outages:
            log.warning("waiting for the %s: %s", what, error)
    else:
        if what in _outages:
            _outages[what].answered.set()
        return answer
    outage = _outages.setdefault(what, _Outage())
    outage.waiting += 1
    try:
        answer = await _answered(call, outage.answered)
        outage.answered.set()
    finally:
        outage.waiting -= 1
        if not outage.waiting:
            del _outages[what]
            if outage.answered.is_set():
                log.warning("the %s is back", what)
    return answer


class Stopped(ShoalError):
    """The process was told to stop while it waited for a store."""


async def patiently_until(
    stopping: asyncio.Event, what: str, call: Callable[[], Awaitable[T]]
) -> T:
    """Wait like `patiently`, but only until `stopping` is set. Raises Stopped then."""

    async def attempt() -> T:
        try:
            return await call()
        except StorageBusy as error:
            if stopping.is_set():
                raise Stopped(str(error)) from None
            raise

    return await patiently(what, attempt)


async def _answered(call: Callable[[], Awaitable[T]], somebody_was: asyncio.Event) -> T:
    wait_s = RETRY_FIRST_S
    while True:
        if somebody_was.is_set():
            await asyncio.sleep(wait_s)
        else:
            await wait_for_event(somebody_was, wait_s)
        try:
            return await call()
        except StorageBusy:
            wait_s = min(wait_s * 2, RETRY_LIMIT_S)


class NowAndThen:
    """Limits an action, such as a log line, to once in a number of seconds."""

    def __init__(self, every_s: float, *, at_once: bool = True) -> None:
        """`at_once`: due from the start; otherwise first due after `every_s`."""
        self._every_s = every_s
        self._next_at = 0.0 if at_once else time.monotonic() + every_s

    def is_due(self) -> bool:
        """Whether the action is due. After returning True, it is not due again for `every_s`."""
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + self._every_s
        return True


class Shortage:
    """A shortage of something on this machine, logged at most once a minute."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._warning = NowAndThen(WARN_EVERY_S)

    async def pause(self, error: OwnFault) -> None:
        """Wait before the next try."""
        if self._warning.is_due():
            log.warning("%s, tasks wait: %s on this machine", self._what, error)
        await asyncio.sleep(OWN_FAULT_PAUSE_S)


def jitter() -> float:
    """A random number in [0, 1) that spreads the retries of a fleet: see `policy.backoff_s`."""
    return random.random()  # noqa: S311 - not used for anything secret
