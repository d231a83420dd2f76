"""What the requests to a carrier cost a crawl: some brokers bill each of them.

Every process adds what it has made. Where it works on several crawls at once, they share a
connection, and a request may be counted for another of them.
"""

from __future__ import annotations

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.broker.carrier import Carrier


class Bill:
    """Of one connection to a carrier. Costs nothing where requests have no price."""

    def __init__(self, link: RedisLink, carrier: Carrier) -> None:
        self._link = link
        self._carrier = carrier
        self._noted = 0

    async def note(self, prefix: str) -> None:
        """Add the requests that were made since, to the crawl whose keys begin so."""
        requests = self._carrier.requests
        if not self._carrier.request_price or requests == self._noted:
            return
        more, self._noted = requests - self._noted, requests
        try:
            await self._link.command("INCRBY", f"{prefix}requests", more)
        except BaseException:
            self._noted -= more
            raise
