"""Logs accounts in on request, with the code that workers log in with, and as politely."""

from __future__ import annotations

import time
from functools import partial

import msgspec

from shoal.core.cookies import EMPTY
from shoal.core.identities import Account, IdentityReport, LoginChange
from shoal.core.urls import parse
from shoal.errors import LoginFailed, OwnFault
from shoal.fetch.port import Fetcher, Response
from shoal.frontier.port import Frontier, Held
from shoal.sessions.own import OwnSessions
from shoal.spider.spider import Spider
from shoal.worker.account_holds import HOLD_S, Hold
from shoal.worker.visits.login_requests import Login, LoginTrouble, Turns
from shoal.worker.visits.logins import flaw_of, log_in
from shoal.worker.visits.outcomes import one_line
from shoal.worker.visits.sending import Routes, route_by

NOT_HELD = "in use, or no exit that it could go by"
"""Why an account could not be held."""
LOST = "it could not be kept from others for as long as the login took"


class CheckedLogin(msgspec.Struct, kw_only=True, frozen=True):
    """The result of logging an account in."""

    identity: str
    is_good: bool = False
    is_left_alone: bool = False
    """Whether the login was not tried because the account is in use."""
    requests: int = 0
    seconds: float = 0.0
    why: str = ""
    """Why it failed or was left alone, in one line."""


class LoginChecks:
    """Logs accounts in, one after the other."""

    def __init__(
        self,
        crawl: str,
        frontier: Frontier,
        sessions: OwnSessions,
        spider: Spider,
        fetcher: Fetcher,
        routes: Routes,
    ) -> None:
        """Requests keep to the crawl's rates for their hosts."""
        self._crawl = crawl
        self._frontier = frontier
        self._sessions = sessions
        self._spider = spider
        self._fetcher = fetcher
        self._routes = routes

    async def check(self, account: Account) -> CheckedLogin:
        """Log one account in, and tell the fleet the result."""
        identity = account.name
        known = self._sessions.account(identity)
        if known is None:
            return CheckedLogin(identity=identity, why="it is no account that is known here")
        table = self._sessions.table(identity)
        if flaw := flaw_of(self._spider, table):
            return CheckedLogin(identity=identity, why=flaw)
        login = Login(identity=identity, account=known, table=table, spider=self._spider)
        held = await self._frontier.hold(identity, _host(login, account), HOLD_S)
        if held is None:
            return CheckedLogin(identity=identity, is_left_alone=True, why=NOT_HELD)
        login.jar = self._sessions.unseal(identity, held.identity.jar) or EMPTY
        return await self._tried(login, held)

    async def _tried(self, login: Login, held: Held) -> CheckedLogin:
        began, found, why = time.monotonic(), IdentityReport(LoginChange.CUT), LOST
        hold = Hold(self._frontier, held)
        try:
            async with hold.lasting():
                found, why = await self._found(login, held)
        except TimeoutError:
            pass  # How far the login has come is unknown.
        finally:
            is_heeded = await hold.let_go(found)
        return CheckedLogin(
            identity=login.identity,
            is_good=is_heeded and found.change is LoginChange.IN,
            requests=login.sent,
            seconds=round(time.monotonic() - began, 3),
            why=why if is_heeded else LOST,
        )

    async def _found(self, login: Login, held: Held) -> tuple[IdentityReport, str]:
        """Log in. Returns what to report of the account, and why the login failed."""
        turns = Turns(partial(self._turn, held))
        try:
            route = route_by(held.lent, None, self._routes)
            done = await log_in(login, self._fetcher, route, turns)
        except LoginFailed as error:
            why = one_line(str(error))
            return IdentityReport(LoginChange.FAILED, why, jar=b""), why
        except LoginTrouble as trouble:  # The host is at fault, not the account.
            return IdentityReport(), one_line(_told(trouble))
        except OwnFault as error:
            return IdentityReport(), str(error)
        jar = self._sessions.seal(login.identity, done.jar)
        return IdentityReport(
            LoginChange.IN, jar=jar, user_agent=done.user_agent, login_url=done.login_url
        ), ""

    async def _turn(self, held: Held, host: str) -> float:
        return await self._frontier.turn(self._crawl, host, held.lent)


def _host(login: Login, account: Account) -> str:
    """Return the host where it will log in, as far as that is known beforehand."""
    url = login.login_url or account.state.login_url
    return parse(url).host if url else ""


def _told(trouble: LoginTrouble) -> str:
    answer = trouble.answer
    if not isinstance(answer, Response):
        return f"{trouble.site}: {answer}"
    block = f", a block: {trouble.block.kind}" if trouble.block is not None else ""
    return f"{trouble.site}: HTTP {answer.status}{block}"
