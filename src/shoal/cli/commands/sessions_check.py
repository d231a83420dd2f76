"""shoal sessions check: logs accounts in before a crawl does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import (
    STORES,
    CrawlName,
    JsonFlag,
    existing_stores,
    settings_from,
    with_settings,
)
from shoal.cli.spider_of import SpiderTarget, targets_of
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.exits.own import own_exits
from shoal.fetch import open_fetcher
from shoal.fleet import target
from shoal.fleet.stores import stores_at
from shoal.frontier.port import Frontier
from shoal.insight.figures import counted, duration
from shoal.insight.json import checked_login_json
from shoal.insight.sessions import chosen, groups_of_crawl
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.sessions.own import own_sessions
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider
from shoal.worker.login_checks import CheckedLogin, LoginChecks
from shoal.worker.visits.sending import no_routes

SOME_BAD = 3

Identities = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SESSION#ACCOUNT", help="Accounts: shop#alice, or all of shop. [default: all]"
    ),
]


@with_settings(
    *STORES, "accounts", "encrypt_key", "proxies", "user_agent", "timeout_s", "allow_private"
)
@examples(
    "shoal sessions check shop",
    "shoal sessions check shop shop#alice --spider shop.py",
)
def check(
    crawl: CrawlName,
    options: dict[str, Any],
    identities: Identities = None,
    spider: SpiderTarget = None,
    json: JsonFlag = False,
) -> None:
    """Log accounts in, and show which logins work.

    They log in as they do in the crawl: by the form of their table or the spider's login(), through
    their own exits, at the crawl's rate. The crawl then uses the accounts that are logged in, and
    their rests and bans end; the others rest. Accounts that are in use are left alone. The spider
    is that of the crawl's last run, if the results are in a file on this machine.

    Exit codes: 0 none failed; 3 some failed; 2 usage error.
    """
    stores = existing_stores({name: options[name] for name in STORES})
    checked = run(_check(stores, crawl, identities or [], spider, options, prints=not json))
    if json:
        display.print_json([checked_login_json(each) for each in checked])
    failed = [each for each in checked if not each.is_good and not each.is_left_alone]
    raise typer.Exit(SOME_BAD if failed else 0)


async def _check(
    at: Settings,
    crawl: str,
    wanted: list[str],
    spider_target: str | None,
    options: dict[str, Any],
    *,
    prints: bool,
) -> list[CheckedLogin]:
    async with stores_at(at, archive=False) as stores:
        rules = (await stores.frontier.stats(crawl)).rules
        note = await stores.results.note_of(crawl)
        spider = target.load(targets_of(crawl, spider_target, note, at.results))
        settings = settings_from(options, settings_of(spider))
        logs.configure(json_lines=settings.json_logs)
        made = target.create(spider, args=rules.args)
        async with _checks(crawl, stores.frontier, made, settings) as checks:
            accounts = chosen(await groups_of_crawl(stores.frontier, crawl), wanted)
            checked = []
            for account in accounts:
                checked.append(await checks.check(account))
                if prints:
                    display.say(_line(checked[-1]))
            return checked


@asynccontextmanager
async def _checks(
    crawl: str, frontier: Frontier, spider: Spider, settings: Settings
) -> AsyncIterator[LoginChecks]:
    """Everything that a login needs, closed at the end."""
    sessions, exits = own_sessions(settings, frontier), own_exits(settings, frontier)
    if sessions is None:
        raise ConfigError("no accounts are known here: write a [sessions.NAME] table for them")
    fetcher = open_fetcher(settings)
    try:
        if exits is not None:
            await exits.open()
        await sessions.open()
        routes = exits.route if exits is not None else no_routes
        yield LoginChecks(crawl, frontier, sessions, spider, fetcher, routes)
    finally:
        await fetcher.close()
        await sessions.close()
        if exits is not None:
            await exits.close()


def _line(checked: CheckedLogin) -> str:
    """`shop#alice  logged in, 3 requests, 0.8s`."""
    if checked.is_left_alone:
        return f"{checked.identity}  left alone: {checked.why}"
    if not checked.is_good:
        return f"{checked.identity}  failed: {checked.why}"
    requests = counted(checked.requests, "request")
    return f"{checked.identity}  logged in, {requests}, {duration(checked.seconds)}"
