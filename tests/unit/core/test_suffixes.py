"""Which hosts belong to the same owner."""

from __future__ import annotations

import pytest

from shoal.core.suffixes import registered


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("shop.example", "shop.example"),
        ("www.eu.shop.co.uk", "shop.co.uk"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
    ],
)
def test_registered(host: str, domain: str) -> None:
    assert registered(host) == domain
