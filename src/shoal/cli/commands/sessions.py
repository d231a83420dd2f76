"""shoal sessions: the accounts of a crawl, and how they are doing."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

import typer
from rich.table import Table

from shoal.cli import display
from shoal.cli.commands.sessions_check import check
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, JsonFlag, existing_stores, show_help, with_settings
from shoal.config import Settings
from shoal.core.cookies import Cookie, Jar
from shoal.core.identities import Account, IdentityReport, LoginChange
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.insight.explain_rows import Row
from shoal.insight.figures import duration
from shoal.insight.session_lines import group_line, rest_of
from shoal.insight.sessions import (
    IN_USE,
    RESTING,
    SessionGroup,
    account_json,
    account_state,
    all_groups,
    chosen,
    cookies_json,
    group_json,
    groups_of_crawl,
)
from shoal.runtime.eventloop import run
from shoal.sessions.vault import Unreadable, Vault, vault_of

HELD_S = 10.0
"""How long an account is held, at most, while its login is removed."""
LOGOUT = IdentityReport(LoginChange.OUT, jar=b"")
SOME_LEFT = 3

app = typer.Typer(
    help="Accounts: who is logged in, who rests and why.",
    callback=show_help,
    invoke_without_command=True,
)
app.command("check")(check)

SomeCrawl = Annotated[
    str | None, typer.Argument(metavar="CRAWL", help="The crawl's name. [default: all accounts]")
]
Identity = Annotated[
    str, typer.Argument(metavar="SESSION#ACCOUNT", help="The account, such as shop#alice.")
]
Identities = Annotated[
    list[str] | None,
    typer.Argument(metavar="SESSION#ACCOUNT", help="Accounts: shop#alice, or all of shop."),
]
AllFlag = Annotated[bool, typer.Option("--all", help="All accounts of the crawl.")]


@app.command("list")
@with_settings("frontier")
@examples("shoal sessions list", "shoal sessions list shop --json")
def list_(options: dict[str, Any], crawl: SomeCrawl = None, json: JsonFlag = False) -> None:
    """List accounts, and how they are doing.

    An account is `logged in`, `logged out` (a worker that needs it logs it in), `in use` by a
    worker, `resting` (its last login failed, or its worker died) or `banned`: four logins in a row
    have failed, and no worker tries again before `shoal sessions check` or `logout`. Accounts are
    those of all crawls of the frontier; it has their names and cookies, but never their passwords.
    """
    groups = run(_groups(existing_stores(options), crawl))
    now = time.time()
    if json:
        display.print_json([group_json(group, now) for group in groups])
        return
    if not groups:
        display.say("no accounts: no worker has brought any yet")
    for group in groups:
        display.out().print(_accounts_table(group, now))


@app.command()
@with_settings("frontier", "encrypt_key")
@examples("shoal sessions show shop shop#alice")
def show(
    crawl: CrawlName, identity: Identity, options: dict[str, Any], json: JsonFlag = False
) -> None:
    """Show an account, its last login and its cookies.

    Cookies are shown by name, never with their values. If they are encrypted, this needs
    --encrypt-key.
    """
    settings = existing_stores(options)
    account = run(_one(settings, crawl, identity))
    jar, why_not = _cookies(account, vault_of(settings.encrypt_key, os.environ))
    now = time.time()
    if json:
        cookies = None if jar is None else cookies_json(jar)
        more = {"cookies": cookies, "why_no_cookies": why_not or None}
        display.print_json(account_json(account, now) | more)
        return
    display.out().print(display.facts(account.name, _rows(account, now, jar, why_not)))
    if jar:
        display.out().print(_cookies_table(jar, now))


@app.command()
@with_settings("frontier")
@examples("shoal sessions logout shop shop#alice", "shoal sessions logout shop --all")
def logout(
    crawl: CrawlName,
    options: dict[str, Any],
    identities: Identities = None,
    everyone: AllFlag = False,
) -> None:
    """Forget the cookies and logins of accounts. Their rests and bans also end.

    The site is not told. The next worker that needs an account logs it in again. Accounts that are
    in use are left alone.

    Exit codes: 0 all are logged out; 3 some are in use, and were left alone; 2 usage error.
    """
    if bool(identities) == everyone:
        raise ConfigError("name accounts (shop#alice), or use --all")
    left = run(_logout(existing_stores(options), crawl, identities or []))
    raise typer.Exit(SOME_LEFT if left else 0)


async def _groups(stores: Settings, crawl: str | None) -> list[SessionGroup]:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        if crawl is not None:
            return await groups_of_crawl(frontier, crawl)
        return await all_groups(frontier)


async def _one(stores: Settings, crawl: str, identity: str) -> Account:
    """One account, with its cookies."""
    group, mark, _ = identity.partition("#")
    async with frontier_at(stores.frontier, stores.state) as frontier:
        chosen(await groups_of_crawl(frontier, crawl), [identity])
        if not mark:
            raise ConfigError(f"not an account: {identity} (write {identity}#NAME)")
        found = await frontier.accounts(group, jars=True)
    return next(account for account in found if account.name == identity)


async def _logout(stores: Settings, crawl: str, wanted: list[str]) -> int:
    """Log accounts out. Returns how many were left alone."""
    left = 0
    async with frontier_at(stores.frontier, stores.state) as frontier:
        for account in chosen(await groups_of_crawl(frontier, crawl), wanted):
            held = await frontier.hold(account.name, None, HELD_S)
            if held is None or not await frontier.let_go(held, LOGOUT):
                left += 1
                display.say(f"{account.name}  left alone: in use{_user(account)}")
                continue
            display.say(f"{account.name}  logged out")
    return left


def _accounts_table(group: SessionGroup, now: float) -> Table:
    columns = ("account", "state", "logins", "expired", "requests", "last used", "exit", "why not")
    made = display.table(columns, [_account_row(each, now) for each in group.accounts])
    made.title = display.text(group_line(group, now))
    made.title_justify = "left"
    return made


def _account_row(account: Account, now: float) -> tuple[str, ...]:
    state = account.state
    return (
        account.name,
        _state(account, now),
        *(f"{count:,}" for count in (state.logins, state.expired, account.exit.requests)),
        _ago(account.exit.used_at, now),
        *(state.through, state.why),
    )


def _state(account: Account, now: float) -> str:
    state = account_state(account, now)
    if state == IN_USE:
        return f"{state}{_user(account)}"
    return f"{state} {rest_of(account, now)}" if state == RESTING else state


def _user(account: Account) -> str:
    return f" by {account.state.worker}" if account.state.worker else ""


def _ago(at: float, now: float) -> str:
    return f"{duration(max(now - at, 0.0))} ago" if at else ""


def _rows(account: Account, now: float, jar: Jar | None, why_not: str) -> list[Row]:
    state, exit_ = account.state, account.exit
    cookies = why_not if jar is None else str(len(jar.cookies))
    rows: list[Row] = [
        ("state", _state(account, now)),
        ("logins", f"{state.logins:,}, the last {_ago(state.login_at, now) or 'never'}"),
        ("expired", f"{state.expired:,}"),
        ("requests", f"{exit_.requests:,}, the last {_ago(exit_.used_at, now) or 'never'}"),
        ("failed logins in a row", f"{state.failures:,}"),
        ("why the last one failed", state.why),
        ("exit", state.through),
        ("user agent", state.user_agent),
        ("logged in at", state.login_url),
        ("cookies", cookies),
    ]
    return [(name, value) for name, value in rows if value]


def _cookies(account: Account, vault: Vault) -> tuple[Jar | None, str]:
    """Its cookies, or why they cannot be read."""
    try:
        return vault.unseal(account.name, account.jar), ""
    except Unreadable as error:
        return None, str(error)


def _cookies_table(jar: Jar, now: float) -> Table:
    columns = ("cookie", "domain", "path", "expires", "flags")
    return display.table(columns, [_cookie_row(cookie, now) for cookie in jar.cookies])


def _cookie_row(cookie: Cookie, now: float) -> tuple[str, ...]:
    flags = (
        (cookie.secure, "secure"),
        (cookie.http_only, "http only"),
        (cookie.host_only, "host only"),
    )
    shown = ", ".join(name for is_set, name in flags if is_set)
    return cookie.name, cookie.domain, cookie.path, _expiry(cookie, now), shown


def _expiry(cookie: Cookie, now: float) -> str:
    if cookie.expires is None:
        return "with the session"
    left_s = cookie.expires - now
    return f"in {duration(left_s)}" if left_s > 0 else "expired"
