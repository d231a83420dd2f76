"""The cookies of identities while a worker uses them.

A worker may have several requests under way with one identity. They share one jar, which each
answer changes, and each outcome carries all of it. Cookies that come with a lease are older than
the jar if this worker has reported them itself. Otherwise another worker has changed the cookies,
and the lease counts.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque

from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.identities import LeasedIdentity
from shoal.fetch.port import Response
from shoal.worker.visits.own_sessions import OwnSessions

REMEMBERED = 1_000
"""The number of identities whose cookies are remembered, and of reported jars remembered for
each."""


class LiveJar:
    """The current cookies of one identity."""

    def __init__(self, jar: Jar, kept: bytes) -> None:
        self.jar = jar
        self._kept = jar  # What the frontier has, or will have soon.
        self._reported = deque([hash(kept)], maxlen=REMEMBERED)

    def is_ours(self, kept: bytes) -> bool:
        """Whether this worker has reported these cookies to the frontier or got them from it."""
        return hash(kept) in self._reported

    def note(self, response: Response) -> None:
        """Apply the changes of an answer."""
        if lines := response.set_cookies:
            now = time.time()
            self.jar = self.jar.after(changes(self.jar, lines, response.url, now), now)

    @property
    def is_unreported(self) -> bool:
        """Whether there are changes that the frontier has not been told."""
        return self.jar != self._kept

    def note_reported(self, kept: bytes) -> None:
        """Note that the frontier is told of the present jar."""
        self._kept = self.jar
        self._reported.append(hash(kept))


class LiveJars:
    """The cookies of all identities that a worker has used recently."""

    def __init__(self, sessions: OwnSessions) -> None:
        self._sessions = sessions
        self._jars: OrderedDict[str, LiveJar] = OrderedDict()

    def of(self, identity: LeasedIdentity) -> LiveJar | None:
        """Return the cookies of a leased identity. None: they cannot be read here."""
        live = self._jars.get(identity.name)
        if live is None or not live.is_ours(identity.jar):
            jar = self._sessions.unseal(identity.name, identity.jar) if identity.jar else EMPTY
            if jar is None:
                return None
            live = self._jars[identity.name] = LiveJar(jar, identity.jar)
        self._jars.move_to_end(identity.name)
        if len(self._jars) > REMEMBERED:
            self._jars.popitem(last=False)
        return live

    def unreported(self, identity: LeasedIdentity) -> bytes | None:
        """Return the sealed cookies for the frontier to keep from now on. None: it has them."""
        live = self._jars.get(identity.name)
        if live is None or not live.is_unreported:
            return None
        kept = self._sessions.seal(identity.name, live.jar)
        live.note_reported(kept)
        return kept

    def begin(self, identity: LeasedIdentity, jar: Jar) -> bytes:
        """Take the cookies of a new login. Returns them sealed, for the frontier to keep."""
        kept = self._sessions.seal(identity.name, jar)
        self._jars[identity.name] = LiveJar(jar, kept)
        return kept
