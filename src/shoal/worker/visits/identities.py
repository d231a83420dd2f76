"""The cookies of identities while a worker uses them.

Of one identity a worker may have several requests under way. They share one jar, which each answer
changes, and each outcome has all of it. What a lease brings along is older than that, if it is what
we have said ourselves; if it is not, somebody else has changed the cookies, and that counts.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque

from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.identities import LeasedIdentity
from shoal.fetch.port import Response
from shoal.worker.visits.own_sessions import OwnSessions

REMEMBERED = 1_000
"""Identities whose cookies are remembered, and of each the last jars that were said."""


class LiveJar:
    """The cookies of one identity, as of now."""

    def __init__(self, jar: Jar, kept: bytes) -> None:
        self.jar = jar
        self._kept = jar  # What the frontier has, or will have soon.
        self._said = deque([hash(kept)], maxlen=REMEMBERED)

    def is_ours(self, kept: bytes) -> bool:
        """Whether the frontier was told these by us, or we were by it."""
        return hash(kept) in self._said

    def note(self, response: Response) -> None:
        """What an answer changes."""
        if lines := response.set_cookies:
            now = time.time()
            self.jar = self.jar.after(changes(self.jar, lines, response.url, now), now)

    @property
    def is_unsaid(self) -> bool:
        """Whether the frontier is to be told."""
        return self.jar != self._kept

    def said(self, kept: bytes) -> None:
        """The frontier is told."""
        self._kept = self.jar
        self._said.append(hash(kept))


class LiveJars:
    """The cookies of all identities that a worker has used lately."""

    def __init__(self, sessions: OwnSessions) -> None:
        self._sessions = sessions
        self._jars: OrderedDict[str, LiveJar] = OrderedDict()

    def of(self, identity: LeasedIdentity) -> LiveJar | None:
        """Those of an identity that was leased. None: they cannot be read here."""
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

    def unsaid(self, identity: LeasedIdentity) -> bytes | None:
        """What the frontier is to keep from now on. None: what it has."""
        live = self._jars.get(identity.name)
        if live is None or not live.is_unsaid:
            return None
        kept = self._sessions.seal(identity.name, live.jar)
        live.said(kept)
        return kept

    def begin(self, identity: LeasedIdentity, jar: Jar) -> bytes:
        """It has logged in, and has these now. What the frontier is to keep."""
        kept = self._sessions.seal(identity.name, jar)
        self._jars[identity.name] = LiveJar(jar, kept)
        return kept
