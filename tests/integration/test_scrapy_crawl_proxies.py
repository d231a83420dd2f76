"""Scrapy projects that go by exits: real proxies, and what the target saw of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.banning_site import OWN_ADDRESS, Ban, BanningSite, assert_only_by
from support.proxies import TinyProxy, sources
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.scrapy_projects import ADDON, Project, assert_in_order, counted
from support.sites import serving
from support.until import until_now

PAGES = 20
LINKS = """
import os

import scrapy


class Links(scrapy.Spider):
    name = "links"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        yield {"path": "/" + response.url.split("/", 3)[3], "status": response.status}
        yield from response.follow_all(css="a", meta=response.meta.copy())
"""
ALL = {"/": 1, **{f"/{number}": 1 for number in range(1, PAGES + 1)}}


@pytest.fixture
def site() -> Iterator[BanningSite]:
    with serving(BanningSite(PAGES)) as site:
        yield site


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def frontier(request: pytest.FixtureRequest, redis_server: RedisServer) -> dict[str, str]:
    return {"SHOAL_FRONTIER": redis_server.url} if request.param == "redis" else {}


@contextmanager
def exits(folder: Path, count: int, **login: str) -> Iterator[list[TinyProxy]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(TinyProxy(folder / "proxies", source, **login))
            for source in sources(count)
        ]


def project(
    path: Path, site: BanningSite, addresses: Sequence[str], spider: str = LINKS, **settings: Any
) -> Project:
    """One whose requests leave by a list of proxies."""
    given = {**ADDON, "SHOAL_PROXIES": "list.txt", "ROBOTSTXT_OBEY": True, **settings}
    made = Project(path / "machine", spider, given, sites=site.urls)
    (made.path / "list.txt").write_text("".join(f"{address}\n" for address in addresses))
    return made


def test_all_that_is_sent_goes_by_exits(
    tmp_path: Path, site: BanningSite, frontier: dict[str, str]
) -> None:
    """Also what Scrapy's middleware asks for: robots.txt."""
    with exits(tmp_path, 3) as servers:
        made = project(tmp_path, site, [server.url for server in servers], **frontier)
        assert_in_order(made.crawl("links"))
        assert_only_by(site, [server.source for server in servers])
    assert counted(made.items(), "path") == ALL
    assert [seen.path for seen in site.log].count("/robots.txt") == 1
    assert set(site.sources) == {server.source for server in servers}


@pytest.mark.rare
def test_the_workers_of_shoal_crawl_go_by_the_tables(tmp_path: Path, site: BanningSite) -> None:
    """A pool of shoal.toml is named by the project; the command begins the crawl."""
    with exits(tmp_path, 2) as servers:
        made = project(tmp_path, site, [server.url for server in servers], SHOAL_PROXIES="dc")
        (made.path / "shoal.toml").write_text('[proxies.dc]\nfrom = "file:list.txt"\n')
        ended = made.commands.shoal("crawl", "scrapy:links", "--workers", "2")
        assert ended.code == 0, ended
        assert_only_by(site, [server.source for server in servers])
    assert counted(made.items(), "path") == ALL


@pytest.mark.parametrize(
    "ban", first_then_rare(Ban.CAPTCHA, Ban.FORBIDDEN, Ban.TOO_MANY, Ban.LOGIN)
)
def test_a_banned_exit_is_left(tmp_path: Path, site: BanningSite, ban: Ban) -> None:
    """What it meets reaches no callback: another exit reads the page. Its robots.txt is none."""
    with exits(tmp_path, 3) as servers:
        made = project(tmp_path, site, [server.url for server in servers])
        site.ban(servers[0].source, ban)
        assert_in_order(made.crawl("links"))
        assert_only_by(site, [server.source for server in servers])
    assert counted(made.items(), "path") == ALL
    assert counted(made.items(), "status") == {200: len(ALL)}
    banned = site.arrivals(servers[0].source)
    assert 1 <= len(banned) <= 6, banned  # Then it cools down.
    stats = made.queue.stats("links")
    assert (stats.done, stats.dead) == (len(ALL), 0)


@pytest.mark.rare
def test_a_spider_that_wants_to_see_what_is_forbidden_sees_it(
    tmp_path: Path, site: BanningSite
) -> None:
    spider = LINKS.replace('name = "links"', 'name = "links"\n    handle_httpstatus_list = [403]')
    with exits(tmp_path, 1) as servers:
        made = project(tmp_path, site, [server.url for server in servers], spider)
        site.forbids_after = 0
        assert_in_order(made.crawl("links"))
    assert counted(made.items(), "status") == {403: 1}


def test_no_exit_no_request(tmp_path: Path, site: BanningSite, frontier: dict[str, str]) -> None:
    """Every proxy is killed while the crawl is under way: what is left waits, and then dies."""
    site.takes_s = 0.05
    with exits(tmp_path, 2) as servers:
        addresses = [server.url for server in servers]
        made = project(tmp_path, site, addresses, SHOAL_PROXIES="dc", **frontier)
        table = '[proxies.dc]\nfrom = "file:list.txt"\npool_timeout = "2s"\n'
        (made.path / "shoal.toml").write_text(table)
        made.set(CONCURRENT_REQUESTS_PER_DOMAIN=2)
        with made.crawling("links") as running:
            until_now("half of the pages", lambda: len(site.log) > PAGES // 2)
            for server in servers:
                server.kill()
            ended = running.wait()
        assert_only_by(site, [server.source for server in servers])
    assert ended.code == 0, ended.err
    stats = made.queue.stats("links")
    assert stats.done + stats.dead == len(ALL)
    assert stats.dead
    told = made.queue.shoal("dead", "list", "links").out
    assert "no exit of pool dc could be used for 2s: 2 exits, " in told


@pytest.mark.rare
def test_robots_are_obeyed_though_the_first_exit_cannot_read_them(
    tmp_path: Path, site: BanningSite
) -> None:
    """A robots.txt that an exit could not have does not mean that all is allowed."""
    private = LINKS.replace(
        "def parse(self, response):",
        'def parse(self, response):\n        yield response.follow("/private/page")',
    )
    with exits(tmp_path, 3) as servers:
        addresses = [server.url for server in servers]
        site.ban(servers[0].source, Ban.CHALLENGE)
        servers[1].kill()
        made = project(tmp_path, site, addresses, private)
        assert_in_order(made.crawl("links"))
        assert_only_by(site, [servers[0].source, servers[2].source])
    assert counted(made.items(), "path") == ALL
    assert not [seen for seen in site.log if seen.path.startswith("/private")]


@pytest.mark.rare
def test_a_proxy_of_the_projects_own_is_respected(tmp_path: Path, site: BanningSite) -> None:
    """Such a request has no pool, and what it leads to goes by the same proxy."""
    own = LINKS + (
        "\n    async def start(self):\n"
        "        for url in self.start_urls:\n"
        '            yield scrapy.Request(url, meta={"proxy": os.environ["OWN"]})\n'
    )
    with exits(tmp_path, 1) as servers, TinyProxy(tmp_path, "127.0.0.99") as proxy:
        made = project(tmp_path, site, [server.url for server in servers], own)
        made._env["OWN"] = proxy.url
        made.set(ROBOTSTXT_OBEY=False)
        assert_in_order(made.crawl("links"))
    assert counted(made.items(), "path") == ALL
    assert set(site.sources) == {"127.0.0.99"}


@pytest.mark.rare
def test_a_spider_chooses_a_pool_or_none(tmp_path: Path, site: BanningSite) -> None:
    chosen = """
import os, scrapy

class Links(scrapy.Spider):
    name = "links"

    async def start(self):
        for path, pool in (("1", "one"), ("2", "two"), ("3", "direct"), ("4", None), ("5", "no")):
            yield scrapy.Request(os.environ["SITES"] + path, meta={"proxy_pool": pool})

    def parse(self, response):
        pass
"""
    with exits(tmp_path, 2) as servers:
        made = project(tmp_path, site, [], chosen, SHOAL_PROXIES="one", ROBOTSTXT_OBEY=False)
        tables = [f'[proxies.{name}]\nfrom = "file:{name}.txt"\n' for name in ("one", "two")]
        (made.path / "shoal.toml").write_text("\n".join(tables))
        for name, server in zip(("one", "two"), servers, strict=True):
            (made.path / f"{name}.txt").write_text(server.url + "\n")
        ended = made.crawl("links")
    one, two = (server.source for server in servers)
    seen = {arrival.path: arrival.source for arrival in site.log}
    assert seen == {"/1": one, "/2": two, "/3": OWN_ADDRESS, "/4": one}
    assert "meta['proxy_pool'] names no pool of the crawl: 'no'" in ended.err


ASIDE = """
import os, scrapy
from scrapy.http.request import NO_CALLBACK

class Links(scrapy.Spider):
    name = "links"
    start_urls = [os.environ["SITES"]]

    async def parse(self, response):
        aside = scrapy.Request(response.urljoin("/1"), callback=NO_CALLBACK)
        answer = await self.crawler.engine.download_async(aside)
        yield {"path": "/1", "status": answer.status, "file_urls": [response.urljoin("/2")]}
"""


@pytest.mark.rare
def test_what_is_fetched_on_the_side_goes_by_the_exit_of_its_page(
    tmp_path: Path, site: BanningSite
) -> None:
    """By a callback, and by a pipeline for files."""
    with exits(tmp_path, 2) as servers:
        made = project(
            *(tmp_path, site, [server.url for server in servers], ASIDE),
            FILES_STORE="files",
            ITEM_PIPELINES={
                "scrapy.pipelines.files.FilesPipeline": 1,
                "project.pipelines.Appending": 300,
            },
        )
        assert_in_order(made.crawl("links"))
        assert_only_by(site, [server.source for server in servers])
    assert [seen.path for seen in site.log] == ["/robots.txt", "/", "/1", "/2"]
    assert len(site.sources) == 1
    assert [(item["status"], len(item["files"])) for item in made.items()] == [(200, 1)]


USER, PASSWORD = "canaryuser4711", "canarypass0815"


@pytest.mark.rare
def test_nobody_learns_the_logins_of_proxies(
    tmp_path: Path, site: BanningSite, frontier: dict[str, str], redis_server: RedisServer
) -> None:
    """Not by the log, the callbacks, the frontier or the site; wrong ones neither."""
    spider = LINKS.replace(
        '"status": response', '"meta": repr(response.request.meta), "status": response'
    )
    with exits(tmp_path, 2, user=USER, password=PASSWORD) as servers:
        port = servers[0].port
        addresses = [server.url for server in servers]
        addresses += [
            f"http://{USER}:wrongcanary@127.0.0.1:{port}",
            f"http://{USER}:{PASSWORD}@127.0.0.1:9",
        ]
        made = project(
            tmp_path, site, [], spider, SHOAL_PROXIES="dc", LOG_LEVEL="DEBUG", **frontier
        )
        (made.path / "shoal.toml").write_text('[proxies.dc]\nfrom = "env:PROXY_LIST"\n')
        made._env["PROXY_LIST"] = "\n".join(addresses)
        ended = made.crawl("links")
        assert_only_by(site, [server.source for server in servers])
    assert counted(made.items(), "path") == ALL
    texts = {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    with redis_server.client() as client:
        stored = {key: key + (client.dump(key) or b"") for key in client.keys("*")}
    seen = "".join(arrival.headers for arrival in site.log)
    said = {**texts, **stored, "log": (ended.err + ended.out).encode(), "site": seen.encode()}
    login = b64encode(f"{USER}:{PASSWORD}".encode()).rstrip(b"=")
    for place, text in said.items():
        for canary in (b"canaryuser", b"canarypass", b"wrongcanary", login, b":%d" % port):
            assert canary not in text, (place, canary)


@pytest.mark.parametrize(
    ("address", "settings", "says"),
    first_then_rare(
        (
            "socks5://127.0.0.1:9",
            {},
            "--proxies: Scrapy goes by http:// proxies only, not by socks5://",
        ),
        ("bind://127.0.0.1", {}, "--proxies: Scrapy goes by http:// proxies only, not by bind://"),
        (
            "http://127.0.0.1:9",
            {
                "DOWNLOAD_HANDLERS": {
                    "https": "scrapy.core.downloader.handlers.http2.H2DownloadHandler"
                }
            },
            "DOWNLOAD_HANDLERS: with exits, https is for Scrapy's HTTP11DownloadHandler only",
        ),
    ),
)
def test_what_scrapy_cannot_go_by_is_refused(
    tmp_path: Path, site: BanningSite, address: str, settings: dict[str, Any], says: str
) -> None:
    made = project(tmp_path, site, [address], **settings)
    with made.crawling("links") as running:
        ended = running.wait()
    assert says in ended.err
    told = made.commands.shoal("crawl", "scrapy:links", "--workers", "1")
    assert told.code != 0
    assert says in told.err
    assert not site.log
