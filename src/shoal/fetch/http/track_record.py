"""Remembers which exits and hosts have proven good, to decide whom to blame for a failure."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from shoal.core.exits import Blame
from shoal.errors import ExitFault, FetchError
from shoal.fetch.http.ways import Origin

K = TypeVar("K")
V = TypeVar("V")

TRUSTED_S = 3600.0
"""How long a host that has shown a valid certificate is trusted to still have one."""

MAX_REMEMBERED = 10_000


class TrackRecord:
    """What one fetcher remembers of routes (by name) and of origins."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._worked: dict[str, None] = {}
        self._verified_routes: dict[str, None] = {}
        self._verified_at: dict[Origin, float] = {}
        self._unverified_by: dict[Origin, str] = {}

    def has_worked(self, route: str) -> bool:
        """Whether a host was ever reached by this route."""
        return route in self._worked

    def worked(self, route: str) -> None:
        """Remember that a host was reached by this route."""
        _remember(self._worked, route, None)

    def verified(self, route: str, origin: Origin) -> None:
        """Remember that the host showed a valid certificate by this route."""
        _remember(self._verified_routes, route, None)
        _remember(self._verified_at, origin, self._clock())
        self._unverified_by.pop(origin, None)

    def unverified(self, route: str, origin: Origin, words: str) -> FetchError:
        """The error for an invalid certificate: decides whether the host or the exit is to blame.

        Many hosts have an invalid certificate of their own. If every exit that reaches such a host
        were disabled for it, a single link could end a crawl.
        """
        if self._clock() < self._verified_at.get(origin, -TRUSTED_S) + TRUSTED_S:
            return ExitFault(f"{words}: by another exit, or before, it was right", Blame.FORGED)
        if self._unverified_by.setdefault(origin, route) != route:
            return FetchError(words)  # Several exits see the same: it is the host's own.
        _trim(self._unverified_by)
        if route in self._verified_routes:
            return ExitFault(f"{words}: the host's own, or forged by the proxy", Blame.PAIR)
        return ExitFault(f"{words}: perhaps forged by the proxy", Blame.FORGED)


def _remember(known: dict[K, V], key: K, value: V) -> None:
    known[key] = value
    _trim(known)


def _trim(known: dict[K, V]) -> None:
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
