"""Checks that a crawl can reach its servers: frontier, results, archive, broker, feeds, proxies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from shoal.archive import archive_at
from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.drivers.sqlite import path_of
from shoal.errors import ConfigError, ShoalError, StorageBusy, unreachable
from shoal.exits.routes import Exits
from shoal.feeds import open_source
from shoal.feeds.tables import load_feeds
from shoal.fleet.published import check_publishing
from shoal.frontier import frontier_at
from shoal.results import results_at
from shoal.workbench.findings import Finding

WAIT_S = 10.0
"""How long to wait for each server."""

Look = Callable[[], Awaitable[None]]


async def check_servers(every: list[tuple[Settings, str]]) -> list[Finding]:
    """The servers of these settings that cannot be reached. Each of the settings comes with the
    name of its crawl. Every address is tried once, all at the same time."""
    looks: dict[tuple[str, str], Look] = {}
    for settings, crawl in every:
        looks |= _looks(settings, crawl)
    for feed in _feeds():
        looks[("feed", feed)] = partial(_feed, feed)
    found = await asyncio.gather(*(_looked(what[0], look) for what, look in looks.items()))
    return [finding for finding in found if finding is not None]


def _looks(settings: Settings, crawl: str) -> dict[tuple[str, str], Look]:
    looks: dict[tuple[str, str], Look] = {
        ("frontier", f"{settings.frontier} {settings.state}"): partial(_frontier, settings),
        ("results", settings.results): partial(_results, settings),
    }
    if settings.archive is not None:
        looks["archive", settings.archive] = partial(_archive, settings, settings.archive)
    if settings.publish is not None:
        looks["publish", settings.publish] = partial(check_publishing, settings, crawl)
    if settings.proxy_pools:
        looks["proxies", " ".join(sorted(settings.proxy_pools))] = partial(_pools, settings)
    return looks


async def _looked(what: str, look: Look) -> Finding | None:
    try:
        async with asyncio.timeout(WAIT_S):
            await look()
    except TimeoutError:
        return Finding(what, 0, f"no answer within {WAIT_S:.0f} s: is it running?")
    except StorageBusy as error:
        return Finding(what, 0, str(unreachable(error)))
    except ShoalError as error:
        return Finding(what, 0, str(error))
    return None


async def _frontier(settings: Settings) -> None:
    if _is_file(settings.frontier):
        return
    async with frontier_at(settings.frontier, settings.state) as frontier:
        await frontier.check()


async def _results(settings: Settings) -> None:
    if _is_file(settings.results):
        return
    async with results_at(settings.results) as results:
        await results.check()


def _is_file(address: str) -> bool:
    """Whether it is a file, which a crawl creates. Raises ConfigError if a crawl could not."""
    if not address.startswith("sqlite:"):
        return False
    path = path_of(address)
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{masked(address)}: there is no folder {path.parent} for it")
    return True


async def _archive(settings: Settings, address: str) -> None:
    async with archive_at(address, settings.archive_format) as archive:
        await archive.check()


async def _pools(settings: Settings) -> None:
    exits = await Exits.open(settings, strict=True)
    await exits.close()


def _feeds() -> list[str]:
    try:
        return [feed.address for feed in load_feeds()]
    except ConfigError:  # check_file reports it.
        return []


async def _feed(address: str) -> None:
    source = open_source(address)
    try:
        await source.waiting()
    finally:
        await source.close()
