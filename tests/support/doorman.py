"""Manages the sessions of a site with logins, and notes what no correct client does.

A session belongs to the address and the user agent that logged in; a request from elsewhere ends
it. Only the last login of an account is valid.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from aiohttp import web

from support.until import until

CANARY = "canary4711"
"""The start of every session cookie's value."""


class Seen(NamedTuple):
    """A request that arrived."""

    at: float
    """time.monotonic() when the request was noticed."""
    host: str
    source: str
    agent: str
    method: str
    path: str
    cookie: str
    """The Cookie header."""
    account: str
    """The account of the request's session, or the one to log in."""


class Visit(msgspec.Struct):
    """A session of an account."""

    id: str
    account: str
    source: str
    agent: str
    is_open: bool = True
    requests: int = 0

    @property
    def stamp(self) -> str:
        """The value of the `stamp` cookie that the session's next request must have."""
        return f"{self.id}-{self.requests}"


class Doorman:
    """Begins and checks sessions. Everything is noted in lists that tests read."""

    def __init__(self, accounts: Mapping[str, str], at_once: int, ends_after: int) -> None:
        """An account may have `at_once` requests under way. A session ends after `ends_after`
        requests; with 0, never."""
        self.accounts = dict(accounts)
        self.at_once = at_once
        self.ends_after = ends_after
        self.log: list[Seen] = []
        """Every request, in the order of arrival."""
        self.overlaps: list[str] = []
        """Accounts with more requests under way than allowed, once for each such request."""
        self.most: Counter[str] = Counter()
        """The most requests of each account that were under way at once."""
        self.violations: list[str] = []
        """Sessions used from another address or by another browser."""
        self.needless: list[str] = []
        """Accounts that logged in while they were logged in."""
        self.faults: list[str] = []
        """Requests that no browser would send: a login without the token."""
        self.logins: list[str] = []
        """The account of each login."""
        self.refused: list[str] = []
        """The account of each login with a wrong password."""
        self.is_stamping = False
        """Whether each answer sets a cookie that the next request must have."""
        self.stale: list[str] = []
        """Sessions whose request came without that cookie."""
        self.held = ""
        """The account whose login stays unanswered until this changes."""
        self.is_holding = False
        self._visits: dict[str, Visit] = {}
        self._current: dict[str, Visit] = {}
        self._under_way: defaultdict[str, list[web.BaseRequest]] = defaultdict(list)

    def seen(self, path: str = "", account: str | None = None) -> list[Seen]:
        """The requests for paths that begin with `path`, of one account or of all."""
        return [
            each
            for each in self.log
            if each.path.startswith(path) and account in (None, each.account)
        ]

    def note(self, request: web.BaseRequest, account: str) -> None:
        """Log a request."""
        host, source = request.host.partition(":")[0], request.remote or ""
        cookie = request.headers.get("Cookie", "")
        about = (_agent(request), request.method, request.raw_path, cookie, account)
        self.log.append(Seen(time.monotonic(), host, source, *about))

    @contextmanager
    def under_way(self, account: str, request: web.BaseRequest) -> Iterator[None]:
        """Count a request of an account as under way, while in this context.

        Requests whose connection is gone, as after the death of a proxy, are not counted: for their
        sender they are over.
        """
        handled = self._under_way[account]
        handled.append(request)
        count = sum(not _is_left(one) for one in handled)
        self.most[account] = max(self.most[account], count)
        if account and count > self.at_once:
            self.overlaps.append(account)
        try:
            yield
        finally:
            handled.remove(request)

    def visit_of(self, request: web.BaseRequest) -> Visit | None:
        """The session of a request, even if it is over."""
        return self._visits.get(request.cookies.get("sid", ""))

    async def let_in(self, request: web.BaseRequest, user: str, password: str) -> Visit | None:
        """Begin a session. Returns None if the password is wrong."""
        await self._hold(user)
        if self.accounts.get(user) != password:
            self.refused.append(user)
            return None
        if user in self._current and self._current[user].is_open:
            self.needless.append(user)
            self._current[user].is_open = False
        self.logins.append(user)
        id_ = f"{CANARY}-{user}-{len(self.logins)}"
        visit = Visit(id_, user, request.remote or "", _agent(request))
        self._visits[id_] = self._current[user] = visit
        return visit

    def is_welcome(self, request: web.BaseRequest, visit: Visit) -> bool:
        """Whether a session is valid for one more request; counts the request."""
        came = (request.remote or "", _agent(request))
        if visit.is_open and came != (visit.source, visit.agent):
            self.violations.append(f"{visit.id} as {came}")
            visit.is_open = False
        if visit.is_open and self._is_stale(request, visit):
            self.stale.append(visit.id)
            visit.is_open = False
        if visit.is_open:
            visit.requests += 1
            visit.is_open = not self.ends_after or visit.requests <= self.ends_after
        return visit.is_open

    def _is_stale(self, request: web.BaseRequest, visit: Visit) -> bool:
        is_next = self.is_stamping and visit.requests > 0
        return is_next and request.cookies.get("stamp") != visit.stamp

    def end(self, account: str) -> None:
        """Log an account out."""
        self._current[account].is_open = False

    async def _hold(self, account: str) -> None:
        if account == self.held:
            self.is_holding = True
            await until("the login to be let go", lambda: account != self.held)
            self.is_holding = False


def _agent(request: web.BaseRequest) -> str:
    return request.headers.get("User-Agent", "")


def _is_left(request: web.BaseRequest) -> bool:
    """Whether the client no longer waits for the answer."""
    return request.transport is None or request.transport.is_closing()
