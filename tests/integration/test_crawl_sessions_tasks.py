"""Which account a task goes with, in crawls of a shop behind a login; and those of others."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.doorman import CANARY
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.session_crawls import (
    ACCOUNTS,
    USERS,
    SessionFolder,
    assert_all_found,
    assert_honest,
)
from support.session_site import SessionSite
from support.sites import serving

TAKES_S = 0.02


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> SessionFolder:
    return SessionFolder(tmp_path, redis_server.url if request.param == "redis" else "")


def test_cookies_of_redirects_and_forms_belong_to_the_account(folder: SessionFolder) -> None:
    """A cookie that a 302 gives is asked for once of each account, and a form is sent as who has
    read its page was logged in."""
    methods = """
    def start(self):
        for number in range(1, 31):
            yield Task(url=SITE + "adult/%d" % number, job_type="adult")

    def adult(self, page):
        yield page.follow("/product/" + page.url.rpartition("/")[2], handler=self.review)

    def review(self, page):
        yield page.submit("#review", {"text": "very good"}, handler=self.product)
"""
    with serving(SessionSite(ACCOUNTS, 30, takes_s=TAKES_S)) as site:
        folder.put_group(site)
        folder.put_shop(site, methods)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        asked = [seen for seen in site.door.seen("/adult") if "age=" not in seen.cookie]
        assert max(Counter(seen.account for seen in asked).values()) == 1
        assert all(seen.account for seen in site.door.seen("/review"))


def test_one_account_any_and_none(folder: SessionFolder) -> None:
    """The same page for a certain account, for any, and for nobody: three tasks."""
    methods = """
    def start(self):
        for number in range(1, 13):
            url = SITE + "product/%d" % number
            yield Task(url=url, job_type="product", session="shop#bob")
            yield Task(url=url, job_type="product")
            yield Task(url=SITE + "open/%d" % number, job_type="public", session="none")

    def product(self, page):
        yield {"number": int(page.css("h1::text").get().split()[1]),
               "account": page.css("b.account::text").get(),
               "session": page.task.session}

    def public(self, page):
        yield page.follow("/open/again" + page.url[-1], handler=self.nothing)

    def nothing(self, page):
        pass
"""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_group(site)
        folder.put_shop(site, methods)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        items = folder.export("shop")
        numbers = Counter(item["number"] for item in items if item["session"] == "shop#bob")
        assert numbers == Counter(site.numbers)
        assert {item["account"] for item in items if item["session"] == "shop#bob"} == {"bob"}
        assert Counter(item["number"] for item in items if item["session"] == "shop") == numbers
        public = [seen for seen in site.door.seen("/open/") if "again" not in seen.path]
        assert len(public) == 12
        assert not any(CANARY in seen.cookie for seen in public)


def test_two_crawls_share_the_accounts(folder: SessionFolder) -> None:
    """At the same time: neither logs in who is logged in, nor uses who is in use."""
    with serving(SessionSite(ACCOUNTS, 60, takes_s=TAKES_S)) as site:
        folder.put_group(site)
        folder.put_shop(site)
        names = ("one", "two")
        with ExitStack() as stack:
            crawls = [
                stack.enter_context(folder.running("crawl", "shop.py", "--name", name))
                for name in names
            ]
            ends = [crawl.wait() for crawl in crawls]
        assert [ended.code for ended in ends] == [0, 0], ends
        assert_honest(site)
        assert sorted(site.door.logins) == sorted(USERS)
        for name in names:
            assert_all_found(folder, site, name)


def test_two_groups_of_one_crawl(folder: SessionFolder) -> None:
    """An account of one is not lent to the tasks of the other."""
    methods = """
    def start(self):
        for number in range(1, 25):
            group = "shop" if number % 2 else "staff"
            yield Task(url=SITE + "product/%d" % number, job_type="product", session=group)
"""
    with serving(SessionSite({**ACCOUNTS, "eve": "x"}, 24)) as site:
        folder.put_accounts(ACCOUNTS)
        folder.put_accounts({"eve": "x"}, "staff")
        folder.put_group(site)
        folder.put_group(site, "staff")
        folder.put_shop(site, methods)
        ended = folder.shoal("crawl", "shop.py")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
    for item in folder.export("shop"):
        assert (item["account"] == "eve") == (item["number"] % 2 == 0), item
