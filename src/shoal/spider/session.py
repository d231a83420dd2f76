"""The login of an account: requests one after the other, as a browser would make them.

This does what a browser does: it keeps cookies, follows redirects and sends forms. It does not know
how a request gets to its host: see worker/visits/logins.py.
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
"""Sends one request with this Cookie header, when its turn comes. Follows no redirects."""


def place(url: str) -> str:
    """An address to show, without what may be secret before its host or after its path."""
    parsed = parse(url)
    return f"{parsed.protocol}//{parsed.host}{parsed.pathname}"


class Session:
    """Makes the requests with which the method `login` of a spider logs an account in.

    Its requests keep to the rate of their host, like all others. Cookies are kept, and redirects
    are followed.
    """

    def __init__(self, name: str, account: Mapping[str, str], send: Send, jar: Jar = EMPTY) -> None:
        self.name = name
        """`shop#alice`."""
        self.account = account
        """All columns of the account, by name."""
        self.jar = jar
        """Its cookies so far."""
        self.page: Page | None = None
        """The page of the last request."""
        self._send = send
        self._first = ""
        self._form_page = ""
        self._turn = asyncio.Lock()  # An account makes one request at a time.

    def __repr__(self) -> str:
        return f"<Session {self.name}>"

    @property
    def user(self) -> str:
        """The column `user` of the account, or its name if there is no such column."""
        return self.account.get("user") or self.name.partition("#")[2]

    @property
    def password(self) -> str:
        """The column `password` of the account. Raises LoginFailed if it has none."""
        if "password" not in self.account:
            raise LoginFailed("the account has no column password")
        return self.account["password"]

    @property
    def login_url(self) -> str:
        """Where the login seems to have begun: the page whose form was sent first, else the first
        address. Without its query, which may contain a password. Empty if it is the front page of a
        site: pages redirect there for many reasons."""
        began = self._form_page or self._first
        if not began or (place := parse(began)).pathname == "/":
            return ""
        return f"{place.protocol}//{place.host}{place.pathname}"

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Page:
        """Get the page at this address, or where that redirects to. Raises LoginFailed if there are
        too many redirects."""
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
        """Send a form, JSON, files or other bytes: see `Page.follow`. Raises ValueError if an
        option is invalid."""
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
        LoginFailed if it would be sent unencrypted although the login began encrypted."""
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
                raise LoginFailed(f"a URL of more than {MAX_URL_LENGTH} characters")
            self._first = self._first or task.url
            # So that it is sent with this account.
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
