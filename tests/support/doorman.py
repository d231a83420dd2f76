"""Keeps the door of a site with logins, and notes what no honest visitor does.

A session belongs to the address and the user agent that logged in; from elsewhere it is over. Only
the last login of an account holds.
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
"""Begins the value of every cookie of a session."""


class Seen(NamedTuple):
    """A request that came."""

    at: float
    """time.monotonic() when it was noticed."""
    host: str
    source: str
    agent: str
    method: str
    path: str
    cookie: str
    """Its Cookie header."""
    account: str
    """Whose session it came with, or who is to be logged in."""


class Visit(msgspec.Struct):
    """A session."""

    id: str
    account: str
    source: str
    agent: str
    is_open: bool = True
    requests: int = 0

    @property
    def stamp(self) -> str:
        """What the next request of a stamped session has to bring along."""
        return f"{self.id}-{self.requests}"


class Doorman:
    """Lets in who has an account. Everything is noted in lists that tests read."""

    def __init__(self, accounts: Mapping[str, str], at_once: int, ends_after: int) -> None:
        """A session has `at_once` requests under way, and is over after `ends_after` of them; 0 is
        never."""
        self.accounts = dict(accounts)
        self.at_once = at_once
        self.ends_after = ends_after
        self.log: list[Seen] = []
        """Every request, in the order of arrival."""
        self.overlaps: list[str] = []
        """Accounts of which more was under way at once than may be."""
        self.most: Counter[str] = Counter()
        """How many requests of an account were under way at once, at most."""
        self.violations: list[str] = []
        """Sessions that came from another address, or as another browser."""
        self.needless: list[str] = []
        """Logins of accounts that were logged in."""
        self.faults: list[str] = []
        """What no browser would send: a login without the token."""
        self.logins: list[str] = []
        """Who has logged in, each time."""
        self.refused: list[str] = []
        """Who came with a wrong password, each time."""
        self.is_stamping = False
        """Whether each answer has a cookie that the next request must bring along."""
        self.stale: list[str] = []
        """Sessions that came without."""
        self.held = ""
        """The account whose login is not answered until this is another."""
        self.is_holding = False
        self._visits: dict[str, Visit] = {}
        self._current: dict[str, Visit] = {}
        self._under_way: defaultdict[str, list[web.BaseRequest]] = defaultdict(list)

    def seen(self, path: str = "", account: str | None = None) -> list[Seen]:
        """The requests for paths that begin so, of one account or of all."""
        return [
            each
            for each in self.log
            if each.path.startswith(path) and account in (None, each.account)
        ]

    def note(self, request: web.BaseRequest, account: str) -> None:
        """A request has come."""
        host, source = request.host.partition(":")[0], request.remote or ""
        cookie = request.headers.get("Cookie", "")
        about = (_agent(request), request.method, request.raw_path, cookie, account)
        self.log.append(Seen(time.monotonic(), host, source, *about))

    @contextmanager
    def under_way(self, account: str, request: web.BaseRequest) -> Iterator[None]:
        """While a request of an account is handled. One whose connection is gone, as after the
        death of a proxy, is over for who sent it."""
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
        """The session that a request comes with, over or not."""
        return self._visits.get(request.cookies.get("sid", ""))

    async def let_in(self, request: web.BaseRequest, user: str, password: str) -> Visit | None:
        """Begin a session. None: the password is wrong."""
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
        """Whether a session holds for one more request."""
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
    """Whether nobody waits for the answer any more."""
    return request.transport is None or request.transport.is_closing()
