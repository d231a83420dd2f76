"""Counts the requests to a carrier that bills each of them, for the cost of a crawl.

Every process adds its own requests to the crawl's counter. The crawls on which one process works
share a connection, so a request may be counted for another one of them.
"""

from __future__ import annotations

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.broker.carrier import Carrier


class RequestCounter:
    """Counts the requests of one connection. Does nothing if the carrier's requests are free."""

    def __init__(self, link: RedisLink, carrier: Carrier) -> None:
        self._link = link
        self._carrier = carrier
        self._noted = 0

    async def note(self, prefix: str) -> None:
        """Add the requests since the last call to the crawl whose keys begin with `prefix`."""
        requests = self._carrier.requests
        if not self._carrier.request_price or requests == self._noted:
            return
        more, self._noted = requests - self._noted, requests
        try:
            await self._link.command("INCRBY", f"{prefix}requests", more)
        except BaseException:
            self._noted -= more
            raise
