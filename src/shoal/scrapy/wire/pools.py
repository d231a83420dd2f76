"""Chooses the pool by whose exits a project's request leaves, unless the project has set a
proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy import Request

from shoal.config import Rules
from shoal.core.task import DIRECT
from shoal.frontier.admission import default_pool
from shoal.scrapy.wire.tagged import Unserialisable

POOL = "proxy_pool"
"""The key of a request's meta by which a spider chooses a pool, or `direct`."""

BY_EXITS = ("http", "https")
"""Schemes of URLs that can be requested by way of an exit."""

HERE = ("data", "file")
"""Schemes of URLs for which nothing leaves the machine."""


def has_own_proxy(meta: Mapping[str, Any]) -> bool:
    """Whether the project has set a proxy on a request. One from HTTP_PROXY and similar variables
    does not count: Scrapy sets it for all requests, and where there are exits it is ignored."""
    return bool(meta.get("proxy")) and not meta.get("_scheme_proxy")


class Pools:
    """Chooses the pools for the requests of a crawl."""

    def __init__(self, rules: Rules | None = None) -> None:
        """Without rules there are no pools."""
        rules = rules or Rules()
        self._pools = frozenset(rules.pools)
        self._default = default_pool(rules)

    def pool_of(self, request: Request, scheme: str) -> str | None:
        """Return the pool of a request. For one that leaves without an exit that is `direct`, or
        None where the crawl has no default pool; Scrapy then sends it as usual. Raises
        Unserialisable."""
        if not self._pools:
            return None
        pool = request.meta.get(POOL) or self._default
        if pool in (None, DIRECT) or scheme in HERE or has_own_proxy(request.meta):
            return DIRECT if self._default is not None else None
        if pool not in self._pools:
            raise Unserialisable(f"meta['{POOL}']", f"names no pool of the crawl: {pool!r}")
        if scheme not in BY_EXITS:
            raise Unserialisable("its address", f"is {scheme}:, which leaves by no exit")
        return str(pool)
