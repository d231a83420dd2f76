"""The demo shop keeps its word: other tests compare a crawl with what it says must be found."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser
from yarl import URL

from shoal.core.task import Task
from shoal.core.urls import Normaliser, join, parse
from shoal.demo import Pages, WareKind, make_ware
from shoal.demo.shop import CLOSED, Hit, Shop
from shoal.demo.spider import Product, ShopSpider, spider_for
from shoal.errors import BadUrl
from shoal.spider.harvest import harvest
from shoal.spider.page import Page
from shoal.spider.starting import seeds
from support.until import in_time

FORBIDDEN = ("/cart", "/private/")


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with Shop(hosts=2, products=50) as shop:
        yield shop


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as client:
        yield client


async def get(client: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    """Status and text. aiohttp repeats a GET once by itself where the connection was closed."""
    async with client.get(URL(url, encoded=True), allow_redirects=False) as response:
        return response.status, await response.text()


def links(html: str) -> list[str]:
    return [link.attributes.get("href") or "" for link in LexborHTMLParser(html).css("a")]


def text_of(html: str, selector: str) -> str | None:
    node = LexborHTMLParser(html).css_first(selector)
    return node.text() if node else None


class Robot:
    """The simplest correct crawler: each address once, again only if it failed."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._normaliser = Normaliser()
        self._seen: set[str] = set()
        self._todo: list[str] = []
        self.items: dict[str, dict[str, str | float]] = {}

    async def crawl(self, urls: list[str]) -> None:
        for url in urls:
            self._add(url)
        while self._todo:
            await self._visit(self._todo.pop())

    def _add(self, url: str) -> None:
        normal = self._normaliser.identify(url).normal
        if normal not in self._seen and not parse(normal).pathname.startswith(FORBIDDEN):
            self._seen.add(normal)
            self._todo.append(url)

    async def _visit(self, url: str) -> None:
        status, html = await get(self._client, url)
        if status in (500, 503):
            self._todo.append(url)
        elif status == 301:
            self._add(url.replace("/p/", "/product/"))
        elif status == 200:
            self._read(url, html)

    def _read(self, url: str, html: str) -> None:
        for link in links(html):
            try:
                self._add(join(parse(url), link))
            except BadUrl:
                assert not link.startswith(("/", "http:/", "HTTP:/")) or link == "http://["
        sku, title, price = (text_of(html, name) for name in ("span.sku", "h1", "span.price"))
        if sku and title and price and price != "on request":
            self.items[sku] = {"title": title, "price": float(price)}


async def test_a_correct_crawl_finds_what_the_shop_expects(client: aiohttp.ClientSession) -> None:
    async with Shop(hosts=3, products=60) as shop:
        robot = Robot(client)
        await robot.crawl(shop.urls[:1])

        assert robot.items == shop.expected_items()
        visits = Counter((hit.host, hit.page) for hit in shop.log)
        flaky = {(parse(url).port, parse(url).pathname) for url in shop.flaky().values()}
        assert {(str(port), page) for (port, page), times in visits.items() if times > 1} == flaky
        assert not [hit for hit in shop.log if hit.page.startswith(FORBIDDEN)]


async def test_kinds_share_out_the_products(shop: Shop) -> None:
    good, gone, broken = shop.good(), shop.gone(), shop.broken()

    assert len(good) + len(gone) + len(broken) == len(good | gone | broken) == 100
    assert shop.flaky().keys() < good.keys()
    assert shop.moved().keys() < good.keys()
    assert not shop.flaky().keys() & shop.moved().keys()
    assert shop.expected_items().keys() == good.keys()
    assert {make_ware(1, number, 1).kind for number in range(1, 51)} == set(WareKind)


async def test_flaky_products_fail_once(shop: Shop, client: aiohttp.ClientSession) -> None:
    for url in [*shop.flaky().values(), *shop.flaky().values()]:
        await get(client, url)
    statuses: dict[tuple[int, str], list[int]] = {}
    for hit in shop.log:
        statuses.setdefault((hit.host, hit.page), []).append(hit.status)

    assert len(statuses) == len(shop.flaky())
    assert {first for first, *_ in statuses.values()} == {500, 503, CLOSED}
    assert {status for _, *rest in statuses.values() for status in rest} == {200}


async def test_gone_broken_and_moved_products(shop: Shop, client: aiohttp.ClientSession) -> None:
    assert {(await get(client, url))[0] for url in shop.gone().values()} == {404, 410}
    pages = [await get(client, url) for url in shop.broken().values()]
    assert {(status, text_of(html, ".price")) for status, html in pages} == {
        (200, None),
        (200, "on request"),
    }
    for sku, url in shop.moved().items():
        async with client.get(url) as response:
            assert str(response.url) == shop.good()[sku]
            assert [step.status for step in response.history] == [301]


async def test_addresses_that_do_not_exist(shop: Shop, client: aiohttp.ClientSession) -> None:
    root = shop.urls[0].partition("/catalog")[0]
    for path in (
        "/product/0",
        "/product/51",
        "/product/x",
        "/nothing",
        "/catalog?page=0",
        "/catalog?page=99",
        "/catalog?page=x",
        "/catalog?page=1&category=none",
    ):
        assert (await get(client, root + path))[0] == 404, path


async def test_robots_txt(client: aiohttp.ClientSession) -> None:
    async with Shop(hosts=1, products=1) as plain, Shop(hosts=1, crawl_delay_s=0.5) as slow:
        text = (await get(client, f"http://127.0.0.1:{plain.ports[0]}/robots.txt"))[1]
        slow_text = (await get(client, f"http://127.0.0.1:{slow.ports[0]}/robots.txt"))[1]

    assert text == "User-agent: *\nDisallow: /private/\nDisallow: /cart\n"
    assert slow_text == text + "Crawl-delay: 0.5\n"


async def test_the_log_tells_what_was_sent_and_what_it_meant(
    shop: Shop, client: aiohttp.ClientSession
) -> None:
    url = shop.urls[1].replace("/catalog?", "/%63atalog?gclid=1&") + "&category=paper"
    await get(client, url)

    (hit,) = shop.log
    assert (hit.host, hit.method, hit.status) == (shop.ports[1], "GET", 200)
    assert hit.path == "/%63atalog?gclid=1&page=1&category=paper"
    assert hit.page == "/catalog?category=paper&page=1"


def pages(*, messy: bool) -> Pages:
    wares = [[make_ware(host, number, 1) for number in range(1, 101)] for host in range(2)]
    return Pages(0, wares, ["http://127.0.0.1:81", "http://127.0.0.1:82"], messy=messy)


def test_pages_are_the_same_each_time() -> None:
    ware = make_ware(0, 7, 1)

    assert pages(messy=True).product(ware) == pages(messy=True).product(ware)
    assert pages(messy=True).listing(None, 2) == pages(messy=True).listing(None, 2)
    assert make_ware(0, 7, 1) == ware != make_ware(0, 7, 2)


def test_product_pages_have_a_usual_size() -> None:
    made = pages(messy=True)
    sizes = [len(made.product(make_ware(0, number, 1)).encode()) for number in range(1, 101)]

    assert min(sizes) >= 3000
    assert max(sizes) <= 12000
    assert max(sizes) > 2 * min(sizes)


def test_messy_links_have_every_kind_of_mess() -> None:
    made = pages(messy=True)
    found = [link for number in range(1, 6) for link in links(made.listing(None, number) or "")]
    for sign in ("utm_", "gclid", "fbclid", "#top", "/./", "/sale/../", "./../", "HTTP://", "%"):
        assert any(sign in link for link in found), sign
    for junk in ("mailto:", "javascript:", "tel:", "http://["):
        assert any(link.startswith(junk) for link in found), junk
    assert "" in found
    assert any("&category=" in link for link in found)
    assert any("?category=" in link for link in found)


def test_a_tidy_shop_spells_each_address_in_one_way() -> None:
    made = pages(messy=False)
    found = links(made.product(make_ware(0, 1, 1))) + links(made.listing("paper", 1) or "")

    assert all(link.startswith("/") and "#" not in link and "utm_" not in link for link in found)
    assert "/cart" in found


def page_of(html: str, path: str, handler: str) -> Page:
    url = f"http://127.0.0.1:81{path}"
    return Page(
        url=url,
        status=200,
        headers={"Content-Type": "text/html; charset=utf-8"},
        body=html.encode(),
        task=Task(url=url, job_type=handler),
        fingerprint=b"8 bytes.",
    )


async def test_the_spider_reads_the_catalogue() -> None:
    html = pages(messy=True).listing(None, 1) or ""
    found = await harvest(ShopSpider(), page_of(html, "/catalog?page=1", "parse"))

    products = [task for task in found.tasks if task.job_type == "product"]
    others = [task.url for task in found.tasks if task.job_type == "parse"]
    assert len(products) == 2 * 20
    assert {task.priority for task in products} == {10}
    for part in ("page=2", "category=paper", "http://127.0.0.1:82/", "cart", "private"):
        assert any(part in url for url in others), part


async def test_the_spider_reads_products() -> None:
    wares = [make_ware(0, number, 1) for number in range(1, 51)]
    by_kind = {ware.kind: ware for ware in wares}
    ware = by_kind[WareKind.PLAIN]
    html = pages(messy=True).product(ware)
    found = await harvest(ShopSpider(), page_of(html, ware.path, "product"))

    assert found.items == [Product(sku=ware.sku, title=ware.title, price=ware.price)]
    assert len([task for task in found.tasks if task.job_type == "product"]) == 7
    for kind in (WareKind.NO_PRICE, WareKind.ODD_PRICE):
        broken = page_of(pages(messy=True).product(by_kind[kind]), "/product/1", "product")
        with pytest.raises(ValueError, match="could not convert"):
            await harvest(ShopSpider(), broken)


async def test_the_spider_starts_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_DEMO_URLS", "http://127.0.0.1:1/, http://127.0.0.1:2/")
    named = spider_for(["http://127.0.0.1:3/"])

    assert [task.url async for task in seeds(ShopSpider())] == [
        "http://127.0.0.1:1/",
        "http://127.0.0.1:2/",
    ]
    assert [task.url async for task in seeds(named())] == ["http://127.0.0.1:3/"]
    assert named.name == ShopSpider.name


async def start_process(*options: str) -> tuple[asyncio.subprocess.Process, list[str]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "shoal.demo.shop", *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    return process, msgspec.json.decode(await process.stdout.readline(), type=list[str])


async def test_as_a_process_it_logs_and_ends_with_its_parent(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    log = tmp_path / "hits.jsonl"
    process, urls = await start_process("--hosts", "2", "--products", "1", "--log", str(log))
    statuses = [(await get(client, url))[0] for url in urls]
    # Read while it runs: each line is there as soon as its answer is.
    hits = [msgspec.json.decode(line, type=Hit) for line in log.read_bytes().splitlines()]
    assert process.stdin
    process.stdin.close()

    assert await in_time("its end", process.wait()) == 0
    assert statuses == [200, 200]
    assert [hit.page for hit in hits] == ["/catalog?page=1"] * 2
    assert [f":{hit.host}/" in url for hit, url in zip(hits, urls, strict=True)] == [True, True]


async def test_as_a_process_it_ends_at_sigterm() -> None:
    process, _ = await start_process("--hosts", "1", "--products", "1")
    process.send_signal(signal.SIGTERM)

    assert await in_time("its end", process.wait()) == 0
    assert process.stdin
    process.stdin.close()
