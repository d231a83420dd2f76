"""Scrapy projects that go with accounts: what the shop behind the login saw of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.doorman import CANARY
from support.proxies import TinyProxy, sources
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.scrapy_projects import ADDON, Project, assert_in_order, counted, wait_for_log
from support.session_crawls import ACCOUNTS, LOGIN, USERS, SessionFolder, assert_honest
from support.session_site import SessionSite, Stranger
from support.sites import serving
from support.until import until, until_now

PRODUCTS = 30
SHOP = """
import os

import scrapy

from shoal import SessionExpired

SITE = os.environ["SITES"]


class Shop(scrapy.Spider):
    name = "shop"
    start_urls = [SITE + "catalog"]
    user_agent = "members/1.0"

    def parse(self, response):
        yield from response.follow_all(css="a.product", callback=self.product)

    def product(self, response):
        yield {
            "number": int(response.css("h1::text").get().split()[1]),
            "account": response.css("b.account::text").get(),
            "jar": response.meta.get("cookiejar"),
        }
"""


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def frontier(request: pytest.FixtureRequest, redis_server: RedisServer) -> dict[str, str]:
    return {"SHOAL_FRONTIER": redis_server.url} if request.param == "redis" else {}


def project(path: Path, site: SessionSite, spider: str = SHOP, **settings: Any) -> Project:
    """One whose requests go with the accounts of a group."""
    given = {**ADDON, "SHOAL_SESSION": "shop", **settings}
    middlewares = given.pop("middlewares", "")
    return Project(path / "machine", spider, given, sites=[site.url], middlewares=middlewares)


def folder_of(made: Project) -> SessionFolder:
    """Where its accounts are."""
    return SessionFolder(made.path, str(made.settings.get("SHOAL_FRONTIER", "")))


def assert_all_found(made: Project, products: int = PRODUCTS) -> None:
    stats = made.queue.stats("shop")
    assert (stats.state, stats.done, stats.dead) == ("finished", products + 1, 0), stats
    items = made.items()
    assert counted(items, "number") == dict.fromkeys(range(1, products + 1), 1)
    assert all(item["jar"] == f"shop#{item['account']}" for item in items)


class ShutShop(SessionSite):
    """Serves nobody before it is open."""

    is_open = False

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        await until("the shop to open", lambda: self.is_open)
        return await super()._respond(request)


@pytest.mark.parametrize("frontier", first_then_rare("redis", "sqlite"), indirect=True)
def test_processes_share_the_accounts(tmp_path: Path, frontier: dict[str, str]) -> None:
    """Each account logs in once, and has one request under way at a time."""
    with serving(ShutShop(ACCOUNTS, PRODUCTS, takes_s=0.02)) as site:
        made = project(tmp_path, site, CONCURRENT_REQUESTS=2, **frontier)
        folder_of(made).put_group(site)
        with made.crawling("shop") as one, made.crawling("shop") as two:
            for each in (one, two):
                wait_for_log(each, "crawl 'shop' on ")
            site.is_open = True
            for ended in (one.wait(), two.wait()):
                assert_in_order(ended)
        assert_honest(site)
        assert_all_found(made)
        assert max(Counter(site.door.logins).values()) == 1
        assert {seen.agent for seen in site.door.log} == {"members/1.0"}


@pytest.mark.rare
@pytest.mark.parametrize("stranger", Stranger)
def test_sessions_that_end_all_the_time_lose_nothing(
    tmp_path: Path, frontier: dict[str, str], stranger: Stranger
) -> None:
    """No callback sees the page for strangers, and no redirect to the login is followed."""
    products = 60
    shop = SessionSite(ACCOUNTS, products, ends_after=20, stranger=stranger)
    with serving(shop) as site:
        made = project(tmp_path, site, **frontier)
        folder_of(made).put_group(site)
        assert_in_order(made.crawl("shop"))
        assert_honest(site)
        assert_all_found(made, products=products)
        assert len(site.door.logins) > len(set(site.door.logins))
        assert not site.door.seen("/login?next")


def test_the_spider_logs_in_and_says_when_it_is_out(
    tmp_path: Path, frontier: dict[str, str]
) -> None:
    """By its own method; and its callback knows better than any proof."""
    noticing = SHOP.replace(
        "    def product(self, response):",
        LOGIN
        + """
    def logged_in(self, page):
        return "Please log in" not in page.text or page.url.endswith("/product/1")

    def product(self, response):
        if not response.css("a.logout"):
            raise SessionExpired
""",
    )
    shop = SessionSite(ACCOUNTS, PRODUCTS, ends_after=10, stranger=Stranger.OTHER_PAGE)
    with serving(shop) as site:
        made = project(tmp_path, site, noticing, **frontier)
        folder_of(made).put_accounts(ACCOUNTS)
        made.set(SHOAL_ACCOUNTS="shop.csv")
        ended = made.crawl("shop")
        assert_honest(site)
        assert_all_found(made)
    assert "is logged in" in ended.err


@pytest.mark.rare
def test_a_middleware_of_the_projects_own(tmp_path: Path) -> None:
    """A subclass of Scrapy's keeps the cookies of accounts; one that says it is somebody else does
    not get through."""
    middlewares = """
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware


class OwnCookies(CookiesMiddleware):
    def process_request(self, request, *more, **named):
        answer = super().process_request(request, *more, **named)
        request.headers["X-Cookies"] = str(len(self.jars))
        return answer


class OwnAgent:
    def process_request(self, request, spider):
        request.headers["User-Agent"] = "another"
"""
    own = {
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
        "project.middlewares.OwnCookies": 700,
        "project.middlewares.OwnAgent": 710,
    }
    with serving(SessionSite(ACCOUNTS, PRODUCTS)) as site:
        made = project(tmp_path, site, middlewares=middlewares, DOWNLOADER_MIDDLEWARES=own)
        folder_of(made).put_group(site, user_agent="of the accounts")
        assert_in_order(made.crawl("shop"))
        assert_honest(site)
        assert_all_found(made)
        assert {seen.agent for seen in site.door.log} == {"of the accounts"}


@pytest.mark.rare
@pytest.mark.parametrize("is_off", [True, False])
def test_without_jars_there_are_no_accounts(tmp_path: Path, is_off: bool) -> None:
    """Without a session, the project goes on as ever."""
    middlewares = "class Jarless:\n    pass\n"
    place = "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"
    own = {place: None, "project.middlewares.Jarless": 700}
    settings = {"COOKIES_ENABLED": False} if is_off else {"DOWNLOADER_MIDDLEWARES": own}
    with serving(SessionSite(ACCOUNTS, PRODUCTS)) as site:
        made = project(tmp_path, site, middlewares=middlewares, **settings)
        folder_of(made).put_group(site)
        with made.crawling("shop") as running:
            ended = running.wait()
        assert ended.code != 0
        assert (
            "SHOAL_SESSION = 'shop' has cookies, and the project has no CookiesMiddleware of"
            " Scrapy's to send them; see COOKIES_ENABLED and DOWNLOADER_MIDDLEWARES" in ended.err
        )
        assert not site.door.log
        made.set(SHOAL_SESSION=None)
        assert_in_order(made.crawl("shop"))
    assert [seen.path for seen in site.door.log] == ["/catalog", "/login?next=/catalog"]


CHOOSING = """
import os, scrapy

SITE = os.environ["SITES"]

class Shop(scrapy.Spider):
    name = "shop"

    async def start(self):
        for number, meta in enumerate((
            {"shoal_session": "shop#bob"},
            {"cookiejar": "carol"},
            {"shoal_session": "none", "cookiejar": 7},
            {"cookiejar": 7},
        )):
            path = "open" if meta.get("cookiejar") == 7 else "product"
            yield scrapy.Request(f"{SITE}{path}/{number}", meta=meta)

    def parse(self, response):
        account = response.css("b.account::text").get()
        yield {"asked": response.url.rpartition("/")[2], "account": account}
        jar = response.meta["cookiejar"]
        if account and "again" not in response.url:
            url = response.url + "?again"
            yield scrapy.Request(url, meta={"cookiejar": jar})
            yield response.follow("/open/1", meta={**response.meta, "shoal_session": "none"})
"""


def test_a_request_chooses_its_account(tmp_path: Path) -> None:
    with serving(SessionSite(ACCOUNTS, PRODUCTS)) as site:
        made = project(tmp_path, site, CHOOSING)
        folder_of(made).put_group(site)
        ended = made.crawl("shop")
        assert_honest(site)
    found = {item["asked"]: item["account"] for item in made.items()}
    chosen = {"0": "bob", "0?again": "bob", "1?again": "carol", "2": None}
    assert {asked: found[asked] for asked in chosen} == chosen
    assert {item["account"] for item in made.items() if item["asked"] == "1"} == {"carol", None}
    assert all(not seen.cookie or "sid" not in seen.cookie for seen in site.door.seen("/open"))
    assert "meta['cookiejar'] names no account of 'shop': 7" in ended.err


ASIDE = """
import os, scrapy
from scrapy.http.request import NO_CALLBACK

SITE = os.environ["SITES"]

class Shop(scrapy.Spider):
    name = "shop"
    start_urls = [SITE + "catalog"]
    user_agent = "members/1.0"

    async def parse(self, response):
        download = self.crawler.engine.download_async
        jar, own = response.meta["cookiejar"], {}
        for name, jar in (("own", jar), ("other", "shop#nobody"), ("none", None)):
            request = scrapy.Request(SITE + "product/1", NO_CALLBACK, meta={"cookiejar": jar})
            request.meta["dont_redirect"], request.meta["handle_httpstatus_all"] = True, True
            try:
                own[name] = (await download(request)).status
            except scrapy.exceptions.IgnoreRequest as error:
                own[name] = str(error).partition(" for ")[0]
        yield own
"""


@pytest.mark.rare
def test_what_is_fetched_on_the_side_may_go_with_the_account_of_its_page(tmp_path: Path) -> None:
    with serving(SessionSite(ACCOUNTS, PRODUCTS)) as site:
        made = project(tmp_path, site, ASIDE)
        folder_of(made).put_group(site, user_agent="of the accounts")
        assert_in_order(made.crawl("shop"))
        assert_honest(site)
    (found,) = made.items()
    assert found == {"own": 200, "other": "shop#nobody is not leased", "none": 302}


@pytest.mark.rare
def test_several_at_once_share_a_jar(tmp_path: Path, frontier: dict[str, str]) -> None:
    with serving(SessionSite(ACCOUNTS, 60, takes_s=0.05, at_once=3, ends_after=20)) as site:
        made = project(tmp_path, site, **frontier)
        folder_of(made).put_group(site, concurrency=3)
        assert_in_order(made.crawl("shop"))
        assert_honest(site)
        assert_all_found(made, products=60)
        assert max(site.door.most[user] for user in USERS) > 1


@pytest.mark.rare
def test_a_killed_process_costs_no_login(tmp_path: Path, frontier: dict[str, str]) -> None:
    """The cookies are with the frontier, and whoever comes next goes on with them."""
    with serving(SessionSite(ACCOUNTS, PRODUCTS, takes_s=0.05)) as site:
        made = project(tmp_path, site, **frontier)
        folder_of(made).put_group(site)
        with made.crawling("shop") as running:
            until_now("some products", lambda: len(site.door.seen("/product")) > PRODUCTS // 3)
            running.kill_all()
        assert_in_order(made.crawl("shop"))
        assert_honest(site)
        stats = made.queue.stats("shop")
        assert (stats.state, stats.done, stats.dead) == ("finished", PRODUCTS + 1, 0), stats
        assert max(Counter(site.door.logins).values()) == 1
    assert set(counted(made.items(), "number")) == set(site.numbers)


def test_the_workers_of_shoal_crawl(tmp_path: Path, frontier: dict[str, str]) -> None:
    """The command begins the crawl, and tells the fleet of the accounts."""
    spider = SHOP.replace(
        "    def parse(", LOGIN + "\n    logged_in = 'a.logout'\n\n    def parse("
    )
    with serving(SessionSite(ACCOUNTS, PRODUCTS, takes_s=0.01)) as site:
        made = project(tmp_path, site, spider, SHOAL_ACCOUNTS="shop.csv", **frontier)
        folder_of(made).put_accounts(ACCOUNTS)
        ended = made.commands.shoal("crawl", "scrapy:shop", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(made)
        assert max(Counter(site.door.logins).values()) == 1


@pytest.mark.rare
def test_each_account_leaves_by_an_exit_of_its_own(
    tmp_path: Path, frontier: dict[str, str]
) -> None:
    one, two = sources(2)
    accounts = {user: ACCOUNTS[user] for user in USERS[:2]}
    with (
        TinyProxy(tmp_path / "proxies", one) as first,
        TinyProxy(tmp_path / "proxies", two) as second,
        serving(SessionSite(accounts, PRODUCTS, ends_after=10)) as site,
    ):
        made = project(tmp_path, site, **frontier)
        folder = folder_of(made)
        folder.put_pool("res", [first.url, second.url])
        folder.put_group(site, pool="res")
        assert_in_order(made.crawl("shop"))
        assert_honest(site)
        assert_all_found(made)
        ways = {(seen.account, seen.source) for seen in site.door.log if seen.account}
    assert {source for _, source in ways} == {one, two}
    assert len(ways) == len(accounts)


def test_nobody_learns_the_secrets_of_accounts(
    tmp_path: Path, frontier: dict[str, str], redis_server: RedisServer
) -> None:
    """Passwords are nowhere but in their file; of the cookies, only the frontier has some."""
    with serving(SessionSite(ACCOUNTS, PRODUCTS, ends_after=10)) as site:
        made = project(tmp_path, site, SHOAL_RESULTS="sqlite:///results.db", **frontier)
        folder_of(made).put_group(site)
        ended = made.crawl("shop")
        assert_all_found(made)
    files = [path for path in made.path.rglob("*") if path.is_file() and path.suffix != ".csv"]
    said = {path.name: path.read_bytes() for path in files}
    said["the log"] = (ended.err + ended.out).encode()
    with redis_server.client() as client:
        stored = {str(key): key + (client.dump(key) or b"") for key in client.keys("*")}
    for place, text in (said | stored).items():
        assert b"password-of" not in text, place
    for place, text in said.items():
        assert place.startswith("shoal.db") or CANARY.encode() not in text, place
