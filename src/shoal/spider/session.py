"""An account while it is logged in: requests one after the other, as a browser would make them.

How a request gets to its host is not known here: see worker/visits/logins.py. What is known here is
what a browser knows: its cookies, where redirects lead, what a form sends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from shoal.core import bodies
from shoal.core.bodies import Files, FormFields
from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.policy import MAX_REDIRECTS, REDIRECT_STATUSES
from shoal.core.redirects import redirected
from shoal.core.set_cookie import lines_in
from shoal.core.task import Task
from shoal.core.urls import MAX_URL_LENGTH, join, parse
from shoal.errors import BadUrl, LoginFailed
from shoal.spider.page import Page
from shoal.spider.selection import Selection

Send = Callable[[Task, str], Awaitable[Page]]
"""Sends one request, with this Cookie header, when it is its turn. Follows no redirects."""


def place(url: str) -> str:
    """An address as it may be told of: what is before its host, and behind its path, may be a
    secret."""
    parsed = parse(url)
    return f"{parsed.protocol}//{parsed.host}{parsed.pathname}"


class Session:
    """What the method `login` of a spider logs an account in with.

    Its requests keep to the rate of their host, as all others do. Cookies are kept, redirects are
    followed.
    """

    def __init__(self, name: str, account: Mapping[str, str], send: Send, jar: Jar = EMPTY) -> None:
        self.name = name
        """`shop#alice`."""
        self.account = account
        """All columns of the account, by their names."""
        self.jar = jar
        """Its cookies so far."""
        self.page: Page | None = None
        """The last page that was asked for."""
        self._send = send
        self._first = ""
        self._form_page = ""
        self._turn = asyncio.Lock()  # An account has one request under way.

    def __repr__(self) -> str:
        return f"<Session {self.name}>"

    @property
    def user(self) -> str:
        """The column `user` of the account. Without one, its name."""
        return self.account.get("user") or self.name.partition("#")[2]

    @property
    def password(self) -> str:
        """The column `password` of the account. Raises LoginFailed if it has none."""
        if "password" not in self.account:
            raise LoginFailed("the account has no column password")
        return self.account["password"]

    @property
    def login_url(self) -> str:
        """Where the login began, as far as can be told: the page whose form was sent first, else
        the first address; without its query, which may have a password in it. Empty if that is the
        front page of a site: pages redirect to there for many reasons."""
        began = self._form_page or self._first
        if not began or (place := parse(began)).pathname == "/":
            return ""
        return f"{place.protocol}//{place.host}{place.pathname}"

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Page:
        """The page at this address, or where that redirects to. Raises LoginFailed if there is no
        end to redirects."""
        return await self._open(Task(url=url, headers=dict(headers or {})))

    async def post(
        self,
        url: str,
        *,
        form: FormFields | None = None,
        json: Any = None,
        files: Files | None = None,
        body: str | bytes | None = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send a form, JSON, files or other bytes: see `Page.follow`. Raises ValueError if that
        cannot be."""
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=files)
        return await self._open(Task(url=url, **sent._asdict()))

    async def submit(
        self,
        page: Page,
        form: str | Selection,
        values: Mapping[str, Any] | None = None,
        *,
        button: str | Selection | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send a form of a page: see `Page.submit`. Raises ValueError if there is no such form, and
        LoginFailed if a password would leave in the clear though the login began under
        encryption."""
        task = page.submit(form, values, button=button, headers=headers)
        where = parse(task.url)
        if self._first.startswith("https:") and where.protocol == "http:":
            raise LoginFailed(f"the form would be sent to {where.host} without encryption")
        self._form_page = self._form_page or page.url
        return await self._open(task)

    async def _open(self, task: Task) -> Page:
        async with self._turn:
            return await self._followed(task)

    async def _followed(self, task: Task) -> Page:
        task.url = join(parse(task.url), "")
        while True:
            if len(task.url) > MAX_URL_LENGTH:
                raise LoginFailed(f"an address of more than {MAX_URL_LENGTH} characters")
            self._first = self._first or task.url
            # So that whoever sends it sees to it that it leaves as this account.
            task.session, task.depth, task.parent = self.name, 0, None
            page = self.page = await self._asked(task)
            target = page.headers.get("Location")
            if page.status not in REDIRECT_STATUSES or not target:
                await page._weigh()
                return page
            task = self._next(task, page.status, target)

    async def _asked(self, task: Task) -> Page:
        now = time.time()
        page = await self._send(task, self.jar.header(task.url, now))
        if lines := lines_in(page.headers):
            now = time.time()
            self.jar = self.jar.after(changes(self.jar, lines, task.url, now), now)
        return page

    def _next(self, task: Task, status: int, target: str) -> Task:
        try:
            following = redirected(task, status, join(parse(task.url), target))
        except BadUrl as error:
            raise LoginFailed(f"redirected: {error}") from None
        if len(following.redirects) > MAX_REDIRECTS:
            raise LoginFailed(f"more than {MAX_REDIRECTS} redirects, from {task.redirects[0]}")
        return following
