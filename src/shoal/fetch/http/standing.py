"""What has been seen of exits and of hosts so far: it says whom to believe where they disagree."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from shoal.core.exits import Blame
from shoal.errors import ExitFault, FetchError
from shoal.fetch.http.ways import Origin

K = TypeVar("K")
V = TypeVar("V")

SOUND_S = 3600.0
"""So long a host whose certificate was right is believed to have one."""

MAX_REMEMBERED = 10_000


class Standing:
    """What one fetcher remembers. A route goes by its name."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._worked: dict[str, None] = {}
        self._honest: dict[str, None] = {}
        self._sound: dict[Origin, float] = {}
        self._unsound: dict[Origin, str] = {}

    def has_worked(self, route: str) -> bool:
        """Whether a host was reached by it."""
        return route in self._worked

    def worked(self, route: str) -> None:
        """A host was reached by it."""
        _remember(self._worked, route, None)

    def verified(self, route: str, origin: Origin) -> None:
        """By this route, the host had the right certificate."""
        _remember(self._honest, route, None)
        _remember(self._sound, origin, self._clock())
        self._unsound.pop(origin, None)

    def unverified(self, route: str, origin: Origin, words: str) -> FetchError:
        """By this route, the host had a wrong certificate. Whose doing is that?

        Many hosts have a wrong one themselves. If all exits were put out for it that come by such
        a host, one link could end a crawl.
        """
        if self._clock() < self._sound.get(origin, -SOUND_S) + SOUND_S:
            return ExitFault(f"{words}: by another exit, or before, it was right", Blame.FORGED)
        if self._unsound.setdefault(origin, route) != route:
            return FetchError(words)  # Exits agree: it is the host's own.
        _trim(self._unsound)
        if route in self._honest:
            return ExitFault(f"{words}: the host's own, or forged by the proxy", Blame.PAIR)
        return ExitFault(f"{words}: perhaps forged by the proxy", Blame.FORGED)


def _remember(known: dict[K, V], key: K, value: V) -> None:
    known[key] = value
    _trim(known)


def _trim(known: dict[K, V]) -> None:
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
