"""The duplicate filter of scrapy-redis, for DUPEFILTER_CLASS.

Shoal's scheduler does not ask it: the frontier knows what was seen, by Scrapy's own request
fingerprints. With Scrapy's scheduler it works as before, with one blocking call per request.
"""

from __future__ import annotations

import time
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter as MemoryDupeFilter
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.request import RequestFingerprinterProtocol

from shoal.scrapy import connection, defaults
from shoal.scrapy.reading import switch


class RFPDupeFilter(MemoryDupeFilter):
    """Fingerprints in a set on Redis, which is deleted when the spider closes."""

    def __init__(
        self,
        server: Any,
        key: str,
        debug: bool = False,
        *,
        fingerprinter: RequestFingerprinterProtocol | None = None,
    ) -> None:
        """`server` is a blocking client."""
        super().__init__(debug=debug, fingerprinter=fingerprinter)
        self.server = server
        self.key = key

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy's own scheduler."""
        return cls(
            connection.from_settings(crawler.settings),
            defaults.DUPEFILTER_KEY % {"timestamp": int(time.time())},
            switch(crawler.settings, "DUPEFILTER_DEBUG"),
            fingerprinter=crawler.request_fingerprinter,
        )

    def request_seen(self, request: Request) -> bool:
        """Whether the request was seen before. From now on it counts as seen."""
        return not self.server.sadd(self.key, self.request_fingerprint(request))

    def close(self, reason: str = "") -> None:
        """Called when the spider is closed: forget all fingerprints."""
        self.clear()

    def clear(self) -> None:
        """Delete the set of fingerprints."""
        self.server.delete(self.key)


def notice(settings: BaseSettings) -> str | None:
    """Return what to tell a project whose DUPEFILTER_CLASS does more than the ones Shoal replaces,
    or None."""
    filter_class = load_object(settings["DUPEFILTER_CLASS"])
    if filter_class in (RFPDupeFilter, MemoryDupeFilter):
        return None
    return (
        f"DUPEFILTER_CLASS {filter_class.__name__} is not used: the frontier knows what was seen,"
        " by REQUEST_FINGERPRINTER_CLASS. Put there what your filter does to tell requests apart."
    )
