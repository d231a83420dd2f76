"""The pool by whose exits a request of a project leaves, if it does not see to its way itself."""

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
"""What can be asked for by way of an exit."""

HERE = ("data", "file")
"""What leads nowhere: nothing leaves the machine."""


def has_own_proxy(meta: Mapping[str, Any]) -> bool:
    """Whether the project has set a proxy on a request. One that comes from HTTP_PROXY and its like
    was set by Scrapy, for all: it is not heeded where there are exits."""
    return bool(meta.get("proxy")) and not meta.get("_scheme_proxy")


class Pools:
    """Chooses for the requests of a crawl."""

    def __init__(self, rules: Rules | None = None) -> None:
        """Without rules there are no pools."""
        rules = rules or Rules()
        self._pools = frozenset(rules.pools)
        self._default = default_pool(rules)

    def pool_of(self, request: Request, scheme: str) -> str | None:
        """`direct`, or None where the crawl has no pool for all: it leaves without an exit, as
        Scrapy has it leave. Raises Unserialisable."""
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
