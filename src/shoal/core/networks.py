"""Which IP addresses belong to the public internet."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# IANA's registries of special-purpose addresses, reachable or not, and further ones of clouds.
_NOT_PUBLIC_4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private use
        "100.64.0.0/10",  # shared by customers of a carrier; Alibaba's metadata at 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's services for its machines
        "169.254.0.0/16",  # link local; most clouds' metadata at 169.254.169.254
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata at 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays, once
        "192.168.0.0/16",  # private use
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
]


_NOT_PUBLIC_6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments; Teredo, which carries IPv4 addresses, among them
        "2001:db8::/32",  # documentation
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
]


_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""No public address lies outside of it: not in fc00::/7, fe80::/10, ::/96, 64:ff9b:1::/48, ..."""


_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet. False for text that is no address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        inner = _carried(ip)
        if inner is None:
            return ip in _GLOBAL_UNICAST and not any(ip in network for network in _NOT_PUBLIC_6)
        ip = inner
    return not any(ip in network for network in _NOT_PUBLIC_4)


def _carried(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address at which traffic to this address ends up: mapped, 6to4 or NAT64."""
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


@lru_cache(maxsize=4096)
def is_private_literal(host: str) -> bool:
    """Whether the host of a URL is itself an IP address, and a private one."""
    return is_address(host) and not is_public(host)


def is_private_name(host: str) -> bool:
    """Whether a host is on this machine or near it, as far as that is clear without a lookup."""
    return host == "localhost" or host.endswith(".localhost") or is_private_literal(host)


@lru_cache(maxsize=4096)
def is_address(host: str) -> bool:
    """Whether the host of a URL is an IP address. IPv6 addresses may have brackets."""
    try:
        ip_address(host)
    except ValueError:
        return host.startswith("[")
    return True
