"""Reads pages behind a login, with accounts that the whole fleet shares.

The accounts are in a CSV file whose first line is `user,password`:

    MEMBERS_URL=https://shop.example shoal crawl examples/members.py --accounts accounts.csv
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Item, LoginFailed, Page, Session, Spider, Task

SITE = os.environ.get("MEMBERS_URL", "https://shop.example")


class Product(Item, key="url"):
    """A product, and the account that read it."""

    url: str
    title: str
    seen_by: str


class Members(Spider):
    """Reads a catalogue that only members see."""

    name = "members"
    start_urls = (f"{SITE}/catalog",)
    session = "members"
    logged_in = "a.logout"

    async def login(self, session: Session) -> None:
        """Submit the form, with its hidden token. If the site shows an error, report it."""
        form = await session.get(f"{SITE}/login")
        account = {"user": session.user, "password": session.password}
        answer = await session.submit(form, "#login", account)
        if error := answer.css("p.error::text").get():
            raise LoginFailed(error)

    def parse(self, page: Page) -> Iterator[Task]:
        """The catalogue."""
        yield from page.follow_all("a.product", handler=self.product)

    def product(self, page: Page) -> Iterator[Product]:
        """A product."""
        yield Product(
            url=page.url,
            title=page.css("h1::text").get(""),
            seen_by=page.css("b.account::text").get(""),
        )
