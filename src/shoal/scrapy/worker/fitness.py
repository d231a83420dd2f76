"""Checks whether Scrapy can use the exits and accounts of a project."""

from __future__ import annotations

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from shoal.config import Settings, variable_of
from shoal.core.pool_config import TABLES
from shoal.errors import ConfigError
from shoal.exits.routes import Exits
from shoal.fetch.port import Route
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.wire.pools import BY_EXITS
from shoal.scrapy.wire.sessions import NO_JARS, is_session

_SWITCHES = "COOKIES_ENABLED and DOWNLOADER_MIDDLEWARES"


def is_fit(route: Route) -> bool:
    """Whether Scrapy can take a route. It has no SOCKS, and tunnels only for https. Local addresses
    are not usable either: not every version keeps their connections apart."""
    return not route.tunnels_all and (route.proxy is None or route.proxy.scheme == "http")


async def refuse_lists(settings: Settings) -> None:
    """Check the exit lists as they are read here, in a process that does not begin the crawl.
    Raises ConfigError."""
    if not settings.proxy_pools:
        return
    exits = await Exits.open(settings)
    try:
        refuse_unfit(exits)
    finally:
        await exits.close()


def refuse_unfit(exits: Exits) -> None:
    """Raise ConfigError if Scrapy cannot use one of the exits."""
    for name in exits.pools:
        pool = exits.pool(name)
        where = f"--{TABLES}" if name == TABLES else f"[{TABLES}.{name}]"
        for exit_ in pool.exits:
            route = pool.route(exit_, 0)
            if route is None or is_fit(route):
                continue
            if route.tunnels_all:
                raise ConfigError(f"{where}: tunnel: Scrapy has no tunnels for plain http")
            scheme = route.proxy.scheme if route.proxy is not None else ""
            raise ConfigError(f"{where}: Scrapy goes by http:// proxies only, not by {scheme}://")


def refuse_handlers(project: BaseSettings) -> None:
    """Raise ConfigError if requests are sent by handlers that are not known to use the proxy they
    are told: others may ignore it and send from this machine."""
    handlers = project.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in BY_EXITS:
        handler = handlers.get(scheme)
        if handler is not None and load_object(handler) is not HTTP11DownloadHandler:
            own = HTTP11DownloadHandler.__name__
            raise ConfigError(f"DOWNLOAD_HANDLERS: with exits, {scheme} is for Scrapy's {own} only")


def refuse_without_jars(settings: Settings, crawler: Crawler) -> None:
    """Raise ConfigError if the crawl has accounts and there are no jars for their cookies."""
    session = settings.rules.session
    if is_session(session) and Jars.of(crawler) is None:
        setting = variable_of("session")
        raise ConfigError(f"{setting} = {session!r} {NO_JARS}; see {_SWITCHES}")
