"""Keeps requests away from private addresses, whatever a page, a redirect or a name says.

Literal addresses in URLs are checked before a request; names are checked where they are resolved,
and a connection only goes to the very addresses that passed. A name that resolves to something
else the next time is checked again.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from shoal.errors import Refused
from shoal.fetch.dns import AddressInfo

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet. What is not an address does not."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        inner = _carried(ip)
        if inner is None:
            # Outside of 2000::/3 nothing has been handed out: ::/96, fec0::/10, multicast, ...
            return ip in _GLOBAL_UNICAST and ip.is_global
        ip = inner
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _carried(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that traffic to this one ends up at: mapped, 6to4 or NAT64.

    Teredo is not here: its whole range counts as private.
    """
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


@lru_cache(maxsize=4096)
def is_private_literal(host: str) -> bool:
    """Whether the host of a URL is itself an address, and a private one."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


def refusal(host: str, address: str) -> Refused:
    """The error for a host that is, or resolves to, a private address."""
    what = address if host == address else f"{host} is {address}, which"
    return Refused(f"{what} is a private address (see --allow-private)")


def only_public(host: str, found: list[AddressInfo]) -> list[AddressInfo]:
    """The public ones of a name's addresses. Raises Refused if it has only others."""
    public = [info for info in found if is_public(info[4][0])]
    if found and not public:
        raise refusal(host, found[0][4][0])
    return public
