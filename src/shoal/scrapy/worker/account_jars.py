"""The jars of accounts in this process: filled from what a lease brings, read when it is over.

A worker's LiveJars keep what is in a jar of Scrapy and what the frontier has been told of it. A jar
is filled anew only where another worker has changed it.
"""

from __future__ import annotations

import time

from shoal.core.identities import LeasedIdentity
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.wire.identity_jars import from_scrapys, to_scrapys
from shoal.worker.visits.identities import LiveJar, LiveJars


class AccountJars:
    """Scrapy's jars of accounts, by the names of the accounts."""

    def __init__(self, jars: Jars, live: LiveJars) -> None:
        self._jars = jars
        self._live = live
        self._filled: dict[str, LiveJar] = {}

    def fill(self, identity: LeasedIdentity) -> bool:
        """Make sure that the account's cookies are in its jar. False: they cannot be read here."""
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
        """Return the jar for the frontier to keep after a request to a host. None: it has not
        changed."""
        if (live := self._filled.get(identity.name)) is None:
            return None
        live.jar = from_scrapys(self._jars.jar(identity.name), live.jar, host, time.time())
        return self._live.unreported(identity)
