"""The jars of accounts in this process: filled from what a lease brings, read when it is over.

What is in a jar of Scrapy's, and what the frontier has been told of it, is kept by a worker's
LiveJars: a jar is filled anew only where somebody else has changed it.
"""

from __future__ import annotations

import time

from shoal.core.identities import LeasedIdentity
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.wire.identity_jars import from_scrapys, to_scrapys
from shoal.worker.visits.identities import LiveJar, LiveJars


class AccountJars:
    """Scrapy's jars that are those of accounts, by the names of these."""

    def __init__(self, jars: Jars, live: LiveJars) -> None:
        self._jars = jars
        self._live = live
        self._filled: dict[str, LiveJar] = {}

    def fill(self, identity: LeasedIdentity) -> bool:
        """Have the account's cookies in its jar. False: they cannot be read here."""
        live = self._live.of(identity)
        if live is None:
            return False
        if self._filled.get(identity.name) is not live:
            own = self._jars.jar(identity.name)
            own.clear()
            for cookie in to_scrapys(live.jar):
                own.set_cookie(cookie)
            self._filled[identity.name] = live
        return True

    def changed(self, identity: LeasedIdentity, host: str) -> bytes | None:
        """The jar as the frontier is to keep it, after a host was asked. None: as it has it."""
        if (live := self._filled.get(identity.name)) is None:
            return None
        live.jar = from_scrapys(self._jars.jar(identity.name), live.jar, host, time.time())
        return self._live.unsaid(identity)
