"""What a check finds in a spider."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shoal.config import Settings, load
from shoal.fleet.spider_files import spiders_in
from shoal.spider.own_settings import settings_of
from shoal.workbench.check_spider import check_spider

HEAD = "from shoal import Item, Spider\nclass Shop(Spider):\n"

Check = Callable[[str], list[str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Check]:
    """The findings of a class with this body, which begins at line 3."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    numbers = iter(range(1_000))

    def findings(body: str) -> list[str]:
        file = f"shop{next(numbers)}.py"
        lines = [f"    {line}\n" for line in body.splitlines()]
        Path(file).write_text(HEAD + "".join(lines))
        (found,) = spiders_in(file).spiders
        try:
            settings: Settings | None = load(spider=settings_of(found.spider))
        except Exception:
            settings = None
        return [
            finding.text.removeprefix(f"{file}:")
            for finding in check_spider(found.spider, settings)
        ]

    yield findings
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_spider_that_is_right(check: Check) -> None:
    right = """\
name = "shop"
start_urls = ["https://shop.example/"]
rate = "2/s"
def parse(self, page):
    yield page.follow("/a", handler="product", on_failure="on_failure", meta={"a": 1})
    yield from page.follow_all("a", self.product, allow="/p/")
    yield page.submit("form", {"q": "x"}, self.product)
    self.other.follow(callback=1)
async def product(self, page): ...
@staticmethod
def reviews(page): ...
def request(self, request): ...
def item(self, item, page): return item
def on_failure(self, failure): ...
def helper(self, a, b): ...
"""
    assert check(right) == []


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("concurency = 1", "3: concurency is not a setting; did you mean concurrency?"),
        (
            "allowed_hosts = ['a b']",
            "3: Shop: allowed_hosts: not a host: 'a b' (write it like shop.example)",
        ),
        ("rate = 'x'", "3: Shop: rate: not a rate: 'x' (write 2/s, 30/m, 100/h, auto or none)"),
        ("name = 3", "3: Shop.name must be text, not 3"),
        ("proxy_pool = 'x'", "3: proxy_pool: no pool 'x' (there are: none)"),
        ("def parse(self): ...", "3: Shop.parse must take a page, and nothing else"),
        ("def start(self, x): ...", "3: Shop.start must take nothing but self"),
        ("def item(self, item): ...", "3: Shop.item must take (self, item, page)"),
        ("def request(self): ...", "3: Shop.request must take (self, request)"),
        ("def opened(self, x): ...", "3: Shop.opened must take (self)"),
        ("def closed(self): ...", "3: Shop.closed must take (self, summary)"),
        ("def blocked(self): ...", "3: Shop.blocked must take a page, and nothing else"),
        ("plugins = ['x']", "3: plugins: 'x' is text; list classes or objects"),
        ("name = 'shop-{categroy}'", "3: Shop.name: no argument 'categroy' (there are: none)"),
        ("name = '..'", "3: a crawl cannot be named '..'"),
        ("start_urls = 'https://x.example/'", "3: Shop.start_urls must be a list of URLs"),
    ],
)
def test_one_mistake(check: Check, body: str, finding: str) -> None:
    assert [line for line in check(body) if line.startswith("3: ")] == [finding]


def test_start_urls_that_no_crawl_would_fetch(check: Check) -> None:
    body = """\
start_urls = ["shop.example", "https://other.example/", "http://10.0.0.1/", 3]
allowed_hosts = ["shop.example", "10.0.0.1"]
def parse(self, page): ...
"""
    assert check(body) == [
        "3: start_urls: not a URL: 'shop.example' (it must begin with https:// or http://)",
        "3: start_urls: host not allowed: https://other.example/",
        "3: start_urls: http://10.0.0.1/ is a private address:"
        " allow_private = True lets it be crawled",
        "3: start_urls: 3 is not a URL",
    ]


def test_what_calls_name(check: Check) -> None:
    body = """\
def parse(self, page):
    yield page.follow("/a", "prodct")
    yield page.follow("/a", handler=self.prodct)
    yield page.submit("form", {}, self.nothing_like_it)
    yield page.follow("/a", errback=self.product, prioriti=1)
def product(self, page): ...
"""
    assert sorted(check(body)) == [
        "4: Shop has no handler 'prodct'; did you mean product?",
        "5: Shop has no handler 'prodct'; did you mean product?",
        "6: Shop has no handler 'nothing_like_it'",
        "7: page.follow() has no errback=: write on_failure=",
        "7: page.follow() has no prioriti=; did you mean priority?",
    ]
