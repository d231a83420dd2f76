"""Crawls of a shop behind a login, by real commands: logins, their ends, and what the shop saw."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.session_crawls import (
    ACCOUNTS,
    JSON_LOGIN,
    LOGIN,
    USERS,
    SessionFolder,
    assert_all_found,
    assert_honest,
)
from support.session_site import SessionSite, Stranger
from support.sites import serving

TAKES_S = 0.02


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> SessionFolder:
    return SessionFolder(tmp_path, redis_server.url if request.param == "redis" else "")


def test_three_accounts_and_four_workers(folder: SessionFolder) -> None:
    """Each account logs in once, for all workers, and has one request under way at a time."""
    with serving(SessionSite(ACCOUNTS, 60, takes_s=TAKES_S)) as site:
        folder.put_group(site)
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "4")
        assert ended.code == 0, ended
        assert_honest(site)
        assert sorted(site.door.logins) == sorted(USERS)
        assert_all_found(folder, site)
    shares = Counter(item["account"] for item in folder.export("shop"))
    assert set(shares) == set(USERS)
    assert max(shares.values()) <= 2 * min(shares.values()), shares


def test_a_crawl_that_goes_on_is_logged_in(folder: SessionFolder) -> None:
    """By other processes, after the first ones are gone: the cookies are with the frontier."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_group(site)
        folder.put_shop(site)
        assert folder.shoal("crawl", "shop.py", "--max-pages", "6").code == 0
        logins = list(site.door.logins)
        assert folder.shoal("crawl", "shop.py").code == 0
        assert_honest(site)
        assert_all_found(folder, site)
        assert site.door.logins[: len(logins)] == logins
        assert max(Counter(site.door.logins).values()) == 1


def test_a_cookie_that_changes_with_every_page(folder: SessionFolder) -> None:
    """The next request brings the last one along, whichever worker sends it."""
    with serving(SessionSite(ACCOUNTS, 90, takes_s=TAKES_S / 2)) as site:
        site.door.is_stamping = True
        folder.put_group(site)
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "4")
        assert ended.code == 0, ended
        assert_honest(site)
        assert (site.door.stale, sorted(site.door.logins)) == ([], sorted(USERS))
        assert_all_found(folder, site)


@pytest.mark.parametrize("login", [LOGIN, JSON_LOGIN], ids=["token", "json"])
def test_the_spider_logs_in(folder: SessionFolder, login: str) -> None:
    with serving(SessionSite(ACCOUNTS, takes_s=TAKES_S)) as site:
        folder.put_accounts(ACCOUNTS)
        folder.put_plain_group()
        folder.put_shop(site, login)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        assert len(site.door.logins) == len(set(site.door.logins))


def test_accounts_on_the_command_line(folder: SessionFolder) -> None:
    """No table is needed where the spider logs in."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_accounts(ACCOUNTS)
        folder.put_shop(site, LOGIN, logged_in="a.logout")
        ended = folder.shoal("crawl", "shop.py", "--accounts", "shop.csv")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)


@pytest.mark.parametrize("stranger", first_then_rare(*Stranger))
def test_sessions_end_all_the_time(folder: SessionFolder, stranger: Stranger) -> None:
    """After every 20 requests, and each shop says so in its own way. Nothing is lost."""
    shop = SessionSite(ACCOUNTS, 150, takes_s=TAKES_S / 2, ends_after=20, stranger=stranger)
    with serving(shop) as site:
        folder.put_group(site)
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        behind = len(site.door.seen("/product")) + len(site.door.seen("/catalog"))
        assert len(site.door.logins) >= 151 // 20 - len(USERS)
        assert behind <= 151 + len(site.door.logins), "each end costs one request"


@pytest.mark.rare
def test_a_handler_says_that_the_session_has_ended(folder: SessionFolder) -> None:
    """The proof is on pages for strangers as well: only the spider sees it."""
    noticed = """
    def parse(self, page):
        if not page.css("a.logout"):
            raise SessionExpired
        yield from page.follow_all("a.product", handler=self.product)

    def product(self, page):
        if not page.css("a.logout"):
            raise SessionExpired("nobody is logged in")
        yield {"number": int(page.css("h1::text").get().split()[1])}
"""
    shop = SessionSite(ACCOUNTS, 40, ends_after=10, stranger=Stranger.OTHER_PAGE)
    with serving(shop) as site:
        folder.put_group(site, logged_in="a")
        folder.put_shop(site, noticed)
        ended = folder.shoal("crawl", "shop.py")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)


@pytest.mark.rare
def test_a_page_that_ends_every_session(folder: SessionFolder) -> None:
    """It is tried twice more, then it is dead: nobody logs in for it for ever."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_group(site)
        folder.put_shop(site, start_urls=[f"{site.url}trap", f"{site.url}catalog"])
        ended = folder.shoal("crawl", "shop.py")
        assert ended.code == 3, ended
        assert len(site.door.seen("/trap")) == 3
        assert_honest(site)
        stats = folder.stats("shop")
        assert (stats.dead, stats.done) == (1, len(site.numbers) + 1)
        told = folder.shoal("dead", "list", "shop").out
        assert "session" in told, told


@pytest.mark.rare
def test_several_at_once_with_one_account(folder: SessionFolder) -> None:
    """As many as the group says, all from one worker."""
    with serving(SessionSite({"alice": "x"}, 60, takes_s=0.05, at_once=3)) as site:
        folder.put_group(site, concurrency=3)
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "3")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        assert site.door.logins == ["alice"]
        assert site.door.most["alice"] == 3
