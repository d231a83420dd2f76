"""Public suffixes: the names under which anybody can register one, such as `co.uk`."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from shoal.core.networks import is_address

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@lru_cache(maxsize=4096)
def is_public_suffix(domain: str) -> bool:
    """Whether a domain, in lower case, belongs to nobody in particular. A single label that is on
    no list is taken for one as well."""
    return bool(_suffixes().is_public(domain))


@lru_cache(maxsize=4096)
def registered(host: str) -> str:
    """The domain of a host that somebody has registered: `shop.co.uk` of `www.shop.co.uk`. An
    address, or a name that nobody can register, is its own."""
    return host if is_address(host) else _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    """The list that the package brings along. It is read by the first who asks: who uses no cookies
    does not pay for it."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
