"""Sends the requests of a login: each waits for its turn and keeps to the limits of a login."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from shoal.core.blocks import Block, find_block, is_marked
from shoal.core.cookies import EMPTY, Jar
from shoal.core.policy import REDIRECT_STATUSES, RETRY_STATUSES, SEND_SLACK_S
from shoal.core.session_config import USER_AGENT, SessionConfig
from shoal.core.task import Task
from shoal.core.urls import parse
from shoal.errors import FetchError, LoginFailed, TooLate
from shoal.fetch.port import Fetcher, Request, Response, Route
from shoal.runtime.patience import patiently
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.visits.own_sessions import KnownAccount

MAX_REQUESTS = 20
LIMIT_S = 300.0
"""A login takes no more requests and no more time than this. The time it waits for turns does not
count."""
MAX_WAIT_S = 900.0
"""The longest time that a login waits for turns, in all."""
MAX_TOO_LATE = 5
"""How often a request may miss its turn. Connecting may take longer than a turn lasts; the
connection is kept, and the next turn uses it."""

Turn = Callable[[str], Awaitable[float]]
"""Waits until a request may be sent to a host. Returns the time until which it may be sent, by
time.monotonic(). Raises FetchError if waiting would take too long."""


class LoginTrouble(Exception):
    """A login failed through no fault of its account."""

    def __init__(
        self, site: str, answer: Response | FetchError, block: Block | None = None
    ) -> None:
        super().__init__(site)
        self.site = site
        self.answer = answer
        self.block = block


class NoTurn(FetchError):
    """No turn came for a request of a login in all the time it may take."""


class Login(msgspec.Struct, kw_only=True):
    """The account to log in, and how."""

    identity: str
    account: KnownAccount
    table: SessionConfig
    spider: Spider
    jar: Jar = EMPTY
    """The cookies that the login begins with: sites recognise a returning visitor by them."""
    sent: int = 0
    """Requests sent so far."""
    wire_bytes: int = 0

    @property
    def user_agent(self) -> str:
        """The User-Agent of its requests. Empty: the same as that of all others here."""
        return self.account.fields.get(USER_AGENT) or self.table.user_agent

    @property
    def login_url(self) -> str:
        """The address of the login, if the spider or the table names one."""
        return self.spider.login_url or self.table.login_url

    def __repr__(self) -> str:
        return f"Login({self.identity})"


class Turns:
    """Waits for the turns of one login."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[float]],
        granted: tuple[str, float] | None = None,
    ) -> None:
        """`ask` is `WorkSource.turn` for a host. `granted` is a permission that exists already: a
        host, and the time until which it holds."""
        self._ask = ask
        self._granted = granted
        self._left_s = MAX_WAIT_S

    async def __call__(self, host: str) -> float:
        """Wait for a turn: see `Turn`."""
        granted, now = self._granted, time.monotonic()
        if granted is not None and granted[0] == host:
            self._granted = None
            if now <= granted[1]:
                return granted[1]
        while True:
            wait_s, asked_at = await patiently("frontier", lambda: self._asked(host))
            if wait_s <= 0:
                return asked_at + SEND_SLACK_S
            self._left_s -= wait_s
            if self._left_s < 0:
                raise NoTurn(f"{host} gave no turn for a login in {MAX_WAIT_S:g} s")
            await asyncio.sleep(wait_s)

    async def _asked(self, host: str) -> tuple[float, float]:
        asked_at = time.monotonic()
        return await self._ask(host), asked_at


class Sender:
    """Sends the requests of one login, each at its turn."""

    clock: asyncio.Timeout

    def __init__(self, login: Login, fetcher: Fetcher, route: Route, turn: Turn) -> None:
        self._login = login
        self._fetcher = fetcher
        self._route = route
        self._turn = turn
        self.trouble: LoginTrouble | None = None
        """Set if the last request was not answered as by a healthy host: however the login ends,
        the account is not to blame."""
        self.is_over = False

    async def send(self, task: Task, cookies: str) -> Page:
        """Send one request of the login and return its answer. Raises FetchError."""
        if self.is_over:
            raise RuntimeError("a session is of use only while login() runs")
        if self._login.sent >= MAX_REQUESTS:
            raise LoginFailed(f"it took more than {MAX_REQUESTS} requests")
        site = parse(task.url).host
        try:
            response = await self._answer(task, cookies, site)
        except FetchError as error:
            self._login.wire_bytes += error.wire_bytes
            self.trouble = LoginTrouble(site, error)
            raise
        self._login.wire_bytes += response.wire_bytes
        block = _block_in(response, is_by_exit=self._route.proxy is not None)
        if block is not None or response.status in RETRY_STATUSES:
            self.trouble = LoginTrouble(site, response, block)
            raise FetchError(f"HTTP {response.status}")
        self.trouble = None
        return Page(
            url=task.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            task=task,
            fingerprint=b"",
            session=self._login.identity,
        )

    async def _answer(self, task: Task, cookies: str, site: str) -> Response:
        user_agent = self._login.user_agent
        for _ in range(MAX_TOO_LATE):
            send_by = await self._permission(site)
            try:
                self._login.sent += 1
                return await self._fetcher.fetch(
                    Request(task, send_by, self._route, cookies, user_agent)
                )
            except TooLate as error:
                self._login.sent -= 1
                too_late = error
        raise too_late

    async def _permission(self, site: str) -> float:
        """Wait for a turn at the host. The login's clock stands still meanwhile."""
        loop = asyncio.get_running_loop()
        left_s = (self.clock.when() or 0.0) - loop.time()
        self.clock.reschedule(None)
        try:
            return await self._turn(site)
        finally:
            self.clock.reschedule(loop.time() + left_s)


def _block_in(response: Response, *, is_by_exit: bool) -> Block | None:
    """Return the block that an answer to a login is, or None. A 403 means that the password is
    wrong, and a redirect to a login page is what was asked for: neither is a block."""
    status, headers = response.status, response.headers
    if status in REDIRECT_STATUSES or not (is_by_exit or is_marked(headers)):
        return None
    block = find_block(status, headers, response.body, may_be_empty=True)
    return None if block is None or block.kind == "forbidden" else block
