"""Makes what a Scrapy process needs to use its accounts and to log them in."""

from __future__ import annotations

import scrapy
from msgspec.structs import replace
from scrapy.crawler import Crawler

from shoal.config import Settings
from shoal.core.exits import Lent
from shoal.fetch import open_fetcher
from shoal.fetch.port import Fetcher
from shoal.frontier.admission import Admission, default_pool, without_public_port
from shoal.frontier.port import WorkSource
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.worker.account_jars import AccountJars
from shoal.scrapy.worker.identities import Identities
from shoal.scrapy.worker.stand_in import stand_in
from shoal.worker.visits.identities import LiveJars
from shoal.worker.visits.identity_logins import AskTurn, IdentityLogins
from shoal.worker.visits.identity_visits import IdentityVisits
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.own_sessions import OwnSessions
from shoal.worker.visits.sending import Routes


def _login_fetcher(crawler: Crawler, settings: Settings) -> Fetcher:
    """Return what sends the requests of logins: Shoal's own client, with the project's User-Agent.
    It may contact private addresses, as Scrapy may."""
    project = crawler.settings
    own_agent = getattr(crawler.spider, "user_agent", None)  # Old spiders have this attribute.
    told = replace(
        settings,
        user_agent=str(own_agent or project.get("USER_AGENT") or settings.user_agent),
        timeout_s=project.getfloat("DOWNLOAD_TIMEOUT") or settings.timeout_s,
        allow_private=True,
    )
    return open_fetcher(told)


def identities_for(
    worker: str,
    crawler: Crawler,
    settings: Settings,
    sessions: OwnSessions,
    spider: scrapy.Spider,
    jars: Jars,
    turn: AskTurn,
    routes: Routes,
) -> Identities:
    """Return what handles the accounts of a process. Call this while the event loop runs. Raises
    ConfigError."""
    fetcher = _login_fetcher(crawler, settings)
    # Its admission only makes tasks of redirects, which logins follow: it is never asked.
    rules = replace(settings.rules, fingerprints="shoal")
    judge, own, live = Judge(rules, Admission(rules)), stand_in(spider), LiveJars(sessions)
    logins = IdentityLogins(worker, sessions, live, own, fetcher, judge, turn, routes)
    pool = default_pool(rules)
    gate = IdentityVisits(sessions, live, logins, own, fetcher, judge, routes, pool)
    return Identities(AccountJars(jars, live), gate, logins.log_in, fetcher.close)


def turns_of(frontier: WorkSource, crawl: str) -> AskTurn:
    """Return a function that asks for turns at hosts, by the names that Scrapy crawls use for
    them."""

    async def turn(lent: Lent | None, host: str) -> float:
        return await frontier.turn(crawl, without_public_port(host), lent)

    return turn
