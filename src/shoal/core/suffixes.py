"""Public suffixes: names such as `co.uk`, under which anybody can register a domain."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from shoal.core.networks import is_address

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@lru_cache(maxsize=4096)
def is_public_suffix(domain: str) -> bool:
    """Whether a domain, in lower case, belongs to nobody in particular. A single label that is on
    no list counts as a public suffix as well."""
    return bool(_suffixes().is_public(domain))


@lru_cache(maxsize=4096)
def registered(host: str) -> str:
    """The registered domain of a host: `shop.co.uk` for `www.shop.co.uk`. IP addresses and names
    that nobody can register are returned as they are."""
    return host if is_address(host) else _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    """The list of the package, loaded on first use: processes without cookies do not pay for it."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
