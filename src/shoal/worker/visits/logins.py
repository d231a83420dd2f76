"""Logs an account in: the login itself, its proof, and what is to blame if there is none.

This module knows nothing of leases: the caller provides a route to the host and waits for turns. A
login that fails is the account's failure (LoginFailed), unless its host did not answer as a healthy
one would (LoginTrouble). Reasons contain no secrets.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import msgspec

from shoal.core.cookies import Jar
from shoal.core.session_config import USER_AGENT, SessionConfig
from shoal.errors import LoginFailed, StorageError, UnknownCrawl
from shoal.fetch.port import Fetcher, Route
from shoal.spider.form_login import log_in_by_form
from shoal.spider.page import Page
from shoal.spider.reading import is_meant_for_us
from shoal.spider.selection import parse_query
from shoal.spider.session import Session, place
from shoal.spider.spider import Spider, login_of
from shoal.worker.visits.login_requests import LIMIT_S, Login, Sender, Turn
from shoal.worker.visits.proofs import proof_of
from shoal.worker.visits.secrets import SHORT, without_secrets

SECRET_COOKIE = 8
"""Cookie values of at least this many characters are treated as secrets. Shorter ones are flags and
words."""


class LoggedIn(msgspec.Struct, frozen=True):
    """The result of a login."""

    jar: Jar
    user_agent: str
    login_url: str


async def log_in(login: Login, fetcher: Fetcher, route: Route, turn: Turn) -> LoggedIn:
    """Log an account in, and check the proof of it.

    Raises LoginFailed, LoginTrouble, OwnFault if this machine is at fault, and what the frontier
    raises when it is asked for a turn.
    """
    sender = Sender(login, fetcher, route, turn)
    session = Session(login.identity, login.account.fields, sender.send, login.jar)
    try:
        async with asyncio.timeout(LIMIT_S) as sender.clock:
            await _performed(login, session)
    except BaseException as error:  # User code may raise anything here, as a handler may.
        if is_meant_for_us(error) or isinstance(error, StorageError | UnknownCrawl):
            raise
        if sender.trouble is not None:
            raise sender.trouble from None
        if sender.clock.expired():
            error = LoginFailed(f"it took longer than {LIMIT_S:g} s")
        raise LoginFailed(_told(error, login, session.jar)) from None
    finally:
        sender.is_over = True
    began = login.login_url or _harmless(session.login_url, login, session.jar)
    # All requests from now on use the same User-Agent, whichever worker sends them: sites bind
    # logins to it.
    return LoggedIn(session.jar, login.user_agent or fetcher.user_agent, began)


def flaw_of(spider: Spider, table: SessionConfig) -> str | None:
    """Return why this spider could not log in any account of a table, in one line. None: it could.
    For checks before a crawl begins."""
    login, said = login_of(spider), spider.logged_in
    if not table.form and login is None:
        return (
            "nobody can log in: the table has no form,"
            " and the spider no method `async def login(self, session)`"
        )
    if not table.form and not inspect.iscoroutinefunction(login):
        return "the spider's login is not async: write `async def login(self, session)`"
    if proof_of(spider, table) is None:
        return (
            "nothing proves a login: logged_in is to be CSS of something"
            " that only pages for who is logged in have"
        )
    if inspect.iscoroutinefunction(said):
        return "the spider's logged_in is async: write `def logged_in(self, page)`"
    return _bad_query(table)


def _bad_query(table: SessionConfig) -> str | None:
    for name in ("logged_in", "form", "button"):
        try:
            if query := getattr(table, name):
                parse_query(query)
        except ValueError as error:
            return f"{name}: {error}"
    return None


async def _performed(login: Login, session: Session) -> None:
    """Log in, and check the proof. Raises LoginFailed, and what the user's code raises."""
    proof, own = proof_of(login.spider, login.table), login_of(login.spider)
    if proof is None or (own is None and not login.table.form):
        raise LoginFailed(flaw_of(login.spider, login.table) or "")
    returned: Any
    if login.table.form:
        returned = await log_in_by_form(session, login.table, proof)
    elif own is not None:
        returned = await own(session)
    page = session.page if returned is None else returned
    if not isinstance(page, Page):
        raise LoginFailed("login() is to return a page, or None after it has asked for one")
    if page.status >= 400 or not proof(page):
        raise LoginFailed(f"no proof of the login on {place(page.url)} (HTTP {page.status})")


def _told(error: BaseException, login: Login, jar: Jar) -> str:
    """Return why a login failed, without secrets."""
    kind = type(error).__name__
    text = str(error) if isinstance(error, LoginFailed) else f"{kind}: {error}"
    return without_secrets(" ".join(text.split()), _secrets(login, jar)) or kind


def _harmless(url: str, login: Login, jar: Jar) -> str:
    """Return a URL if anybody may see it; empty if it has a secret in it. Short secrets do not
    count: many URLs contain them by chance."""
    secrets = [secret for secret in _secrets(login, jar) if len(secret) >= SHORT]
    return url if without_secrets(url, secrets) == url else ""


def _secrets(login: Login, jar: Jar) -> list[str]:
    """Return the secrets of a login: the columns of its account and its cookies."""
    fields, name = login.account.fields, login.account.name
    secrets = [fields[key] for key in fields if key != USER_AGENT and fields[key] != name]
    kept = (*login.jar.cookies, *jar.cookies)
    return secrets + [cookie.value for cookie in kept if len(cookie.value) >= SECRET_COOKIE]
