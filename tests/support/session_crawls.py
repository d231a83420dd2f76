"""Crawls with accounts, as users run them: a folder with accounts, a group, and spiders."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from shoal.core.identities import Account
from support.doorman import CANARY
from support.exit_crawls import ExitFolder
from support.redis_chaos import assert_adds_up
from support.session_site import SessionSite

USERS = ("alice", "bob", "carol")
ACCOUNTS = {user: f"{CANARY}-password-of-{user}" for user in USERS}

SPIDER = """
from shoal import SessionExpired, Spider, Task

SITE = {site!r}

class Shop(Spider):
    start_urls = [SITE + "catalog"]
    session = "shop"
    allow_private = True
    robots = False
    rate = "none"
{settings}
    def parse(self, page):
        yield from page.follow_all("a.product", handler=self.product)

    def product(self, page):
        yield {{"number": int(page.css("h1::text").get().split()[1]),
               "account": page.css("b.account::text").get()}}
{methods}
"""
LOGIN = """
    async def login(self, session):
        page = await session.get(SITE + "login")
        await session.submit(page, "#login", {"user": session.user, "password": session.password})
"""
JSON_LOGIN = """
    async def login(self, session):
        account = {"user": session.user, "password": session.password}
        await session.post(SITE + "api/login", json=account)
        await session.get(SITE + "home")
"""


class SessionFolder(ExitFolder):
    """A folder whose crawls have accounts."""

    def put_accounts(self, accounts: Mapping[str, str], group: str = "shop") -> None:
        """Write the accounts of a group, given as users and passwords."""
        lines = [f"{user},{password}\n" for user, password in accounts.items()]
        self.write(f"{group}.csv", "user,password\n" + "".join(lines))

    def put_group(self, site: SessionSite, group: str = "shop", **settings: Any) -> None:
        """Write a group that logs in by the site's form. Its accounts are those of the site, unless
        `put_accounts` has written others."""
        if not (self.path / f"{group}.csv").exists():
            self.put_accounts(site.door.accounts, group)
        by_form = {
            "login_url": f"{site.url}login",
            "form": "#login",
            "fields": {"user": "{user}", "password": "{password}"},
        }
        self._put(group, {**by_form, **settings})

    def put_plain_group(self, group: str = "shop", **settings: Any) -> None:
        """Write a group that the spider's own `login` logs in."""
        self._put(group, settings)

    def _put(self, group: str, settings: Mapping[str, Any]) -> None:
        always = {"accounts": f"file:{group}.csv", "logged_in": "a.logout"}
        self.put_table(f"sessions.{group}", {**always, **settings})

    def put_shop(self, site: SessionSite, methods: str = "", **settings: Any) -> None:
        """Write a spider that reads the catalogue and all products."""
        lines = "".join(f"    {key} = {value!r}\n" for key, value in settings.items())
        text = SPIDER.format(site=site.url, settings=lines, methods=methods)
        self.write("shop.py", text)

    def accounts(self, group: str = "shop") -> dict[str, Account]:
        """The accounts of a group as the frontier knows them, by name."""
        found = asyncio.run(self.ask_frontier(lambda frontier: frontier.accounts(group)))
        return {account.name.partition("#")[2]: account for account in found}


def assert_honest(site: SessionSite) -> None:
    """Assert that no client did what no correct client does."""
    door = site.door
    found = (door.overlaps, door.violations, door.needless, door.faults)
    assert found == ([], [], [], []), f"overlaps, violations, needless, faults: {found}"


def assert_all_found(folder: SessionFolder, site: SessionSite, crawl: str = "shop") -> None:
    """Assert that the crawl is finished, and that every product is stored exactly once."""
    stats = folder.stats(crawl)
    assert_adds_up(stats)
    assert (stats.state, stats.dead, stats.leased) == ("finished", 0, 0), stats
    found = Counter(item["number"] for item in folder.export(crawl))
    assert found == Counter(site.numbers)
