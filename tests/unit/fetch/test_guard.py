"""Which addresses are private, and what is left of a name's addresses."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from shoal.core.networks import is_private_literal, is_public
from shoal.errors import Refused
from shoal.fetch.guard import only_public
from shoal.fetch.http.dns import AddressInfo

PUBLIC = [
    "1.1.1.1",
    "93.184.215.14",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80e::200e",
    "::ffff:8.8.8.8",
    "2002:0808:0808::1",
    "64:ff9b::808:808",
    "168.63.129.15",
    "168.63.129.17",
    "192.0.1.1",
    "3ffe::1",
    "3fff:1000::1",
    "2001:200::1",
]

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "168.63.129.16",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.0.255",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.175.48.1",
    "100.100.100.200",
    "198.51.100.1",
    "203.0.113.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:169.254.169.254",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::",
    "2002:c0a8:101::1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::808:808",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "100::1",
    "100:0:0:1::1",
    "::ffff:168.63.129.16",
    "::ffff:192.0.0.192",
    "::ffff:0:10.0.0.1",
    "2002:a83f:8110::1",
    "2002:c000:c0::1",
    "64:ff9b::a83f:8110",
    "64:ff9b::192.0.0.192",
    "64:ff9b:1::1",
    "64:ff9b:2::808:808",
    "2001::1",
    "2001:1::1",
    "2001:2::1",
    "2001:3::1",
    "2001:4:112::1",
    "2001:10::1",
    "2001:20::1",
    "2001:30::1",
    "2001:1ff:ffff::1",
    "2620:4f:8000::1",
    "3fff::1",
    "3fff:fff:ffff::1",
    "4000::1",
    "5f00::1",
    "fd20:ce::254",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(address)
    assert not is_private_literal(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_private(address: str) -> None:
    assert not is_public(address)
    assert is_private_literal(address)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f.1", "2130706433", "1.1.1.1.", "é"]
)
def test_what_is_not_an_address_is_not_public(text: str) -> None:
    assert not is_public(text)


def test_a_name_is_not_a_literal() -> None:
    assert not is_private_literal("localhost")


def found(*addresses: str) -> list[AddressInfo]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]


def test_only_public_addresses_are_connected_to() -> None:
    assert only_public("mixed.example", found("10.0.0.1", "1.1.1.1", "::1")) == found("1.1.1.1")


def test_a_name_that_has_only_private_addresses() -> None:
    with pytest.raises(Refused, match=r"^inside\.example is 10\.0\.0\.1, which is a private"):
        only_public("inside.example", found("10.0.0.1", "::1"))


def test_a_name_without_addresses() -> None:
    assert only_public("nothing.example", []) == []


def test_python_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it calls global or private differs between its versions."""
    for name in ("is_global", "is_private", "is_reserved", "is_multicast"):
        for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
            monkeypatch.setattr(kind, name, property(lambda self: pytest.fail("was asked")))
    assert is_public("1.1.1.1")
    assert is_public("2606:4700:4700::1111")
    assert not is_public("10.0.0.1")
    assert not is_public("fd00::1")
