"""Whether Scrapy can go by the exits that a project has, and with its accounts."""

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
    """Whether Scrapy can take a way: it knows no SOCKS, and tunnels for https alone. Addresses of
    this machine are no use either: not every version tells their connections apart."""
    return not route.tunnels_all and (route.proxy is None or route.proxy.scheme == "http")


async def refuse_lists(settings: Settings) -> None:
    """For those who do not begin the crawl: look through the lists as they are read here."""
    if not settings.proxy_pools:
        return
    exits = await Exits.open(settings)
    try:
        refuse_unfit(exits)
    finally:
        await exits.close()


def refuse_unfit(exits: Exits) -> None:
    """Raises ConfigError if one of the exits cannot be used by Scrapy."""
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
    """What sends requests must be known to go by the proxy that it is told: others may not heed
    it, and leave from this machine. Raises ConfigError."""
    handlers = project.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in BY_EXITS:
        handler = handlers.get(scheme)
        if handler is not None and load_object(handler) is not HTTP11DownloadHandler:
            own = HTTP11DownloadHandler.__name__
            raise ConfigError(f"DOWNLOAD_HANDLERS: with exits, {scheme} is for Scrapy's {own} only")


def refuse_without_jars(settings: Settings, crawler: Crawler) -> None:
    """What goes with accounts needs jars that their cookies can be put into. Raises ConfigError."""
    session = settings.rules.session
    if is_session(session) and Jars.of(crawler) is None:
        setting = variable_of("session")
        raise ConfigError(f"{setting} = {session!r} {NO_JARS}; see {_SWITCHES}")
