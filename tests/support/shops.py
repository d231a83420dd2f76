"""Crawls of the demo shop, and assertions that they found everything."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shoal.demo.shop import Hit, Shop
from shoal.demo.spider import URLS_VARIABLE
from support.processes import Folder

SPIDER = "shoal.demo.spider:ShopSpider"
CRAWL = ("crawl", SPIDER, "--allow-private", "--rate", "none")
ROBOTS = "/robots.txt"
FORBIDDEN = ("/cart", "/private/")


def shop_urls(shop: Shop) -> dict[str, str]:
    """The environment variable that gives the spider the shop's URLs."""
    return {URLS_VARIABLE: ",".join(shop.urls)}


def assert_found_everything(folder: Folder, shop: Shop) -> None:
    """Assert that every good product is stored once with the right values, and nothing else is."""
    items = folder.export("shop")
    assert len(items) == len(shop.good())
    found = {item["sku"]: {name: item[name] for name in ("title", "price")} for item in items}
    assert found == shop.expected_items()


def assert_broken_are_dead(folder: Folder, shop: Shop) -> None:
    """Assert that broken products are dead with their reason and traceback, and nothing else
    is."""
    ended = folder.shoal("dead", "list", "shop", "--json", "--limit", "1000")
    dead: dict[str, Any] = {record["url"].partition("?")[0]: record for record in ended.json()}
    assert len(dead) == len(shop.broken())
    for record in dead.values():
        assert record["reason"].startswith("ValueError: could not convert string to float")
        assert "in product" in record["traceback"]


def fetches(log: list[Hit]) -> Counter[tuple[int, str]]:
    """How often each page of each host was requested, including robots.txt."""
    return Counter((hit.host, hit.page) for hit in log)


def needed_fetches(shop: Shop) -> Counter[tuple[int, str]]:
    """How often a perfect crawl requests each product's page: once, and flaky ones twice."""
    flaky, addresses = shop.flaky(), {**shop.good(), **shop.gone(), **shop.broken()}
    pages = {sku: place(url) for sku, url in addresses.items()}
    once = Counter([*pages.values(), *map(place, shop.moved().values())])
    return once + Counter(pages[sku] for sku in flaky)


def place(url: str) -> tuple[int, str]:
    """The port and path of a URL of the shop."""
    host, _, path = url.removeprefix("http://").partition("/")
    return int(host.rpartition(":")[2]), f"/{path}"
