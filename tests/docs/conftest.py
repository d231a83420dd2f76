"""The shop that the examples of the documentation crawl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.demo.shop import Shop
from support.sites import serving

PRODUCTS = 21
"""Two pages of catalogue with a broken, a missing and some flaky and moved products, but none that
answers 503: that would slow the host down, and the tests with it."""


@pytest.fixture(scope="session")
def open_shop() -> Iterator[Shop]:
    """A shop that is open."""
    with serving(Shop(hosts=1, products=PRODUCTS)) as shop:
        yield shop


@pytest.fixture
def shop(open_shop: Shop) -> str:
    """Where the shop is, without a slash at the end."""
    return f"http://127.0.0.1:{open_shop.ports[0]}"
