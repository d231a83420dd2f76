"""shoal status: counters, rates, ETA, hosts."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.live import Live

from shoal.cli import display
from shoal.cli.options import JsonFlag, existing_stores, with_settings
from shoal.eventloop import run
from shoal.frontier import open_frontier
from shoal.frontier.port import Frontier
from shoal.insight.status import as_json

HOSTS_SHOWN = 10
WATCH_EVERY_S = 1.0

Crawl = Annotated[
    str | None, typer.Argument(metavar="[CRAWL]", help="The crawl's name; without it, all crawls.")
]
WatchFlag = Annotated[bool, typer.Option("--watch", help="Refresh in place until Ctrl-C.")]


@with_settings("frontier")
def status(
    options: dict[str, Any], crawl: Crawl = None, watch: WatchFlag = False, json: JsonFlag = False
) -> None:
    """How far, how fast, until when, and which hosts are busy.

    Examples:

      shoal status

      shoal status shop --watch

      shoal status shop --json | jq .done
    """
    run(_status(existing_stores(options).frontier, crawl, watch=watch, json=json))


async def _status(address: str, crawl: str | None, *, watch: bool, json: bool) -> None:
    frontier = open_frontier(address)
    try:
        if json:
            display.print_json(await _data(frontier, crawl))
        elif watch:
            await _watch(frontier, crawl)
        else:
            display.out().print(await _view(frontier, crawl))
    finally:
        await frontier.close()


async def _watch(frontier: Frontier, crawl: str | None) -> None:
    with Live(await _view(frontier, crawl), auto_refresh=False) as live:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            live.update(await _view(frontier, crawl), refresh=True)


async def _data(frontier: Frontier, crawl: str | None) -> Any:
    now = time.time()
    if crawl is None:
        return [as_json(stats, now) for stats in await frontier.crawls()]
    hosts = await frontier.hosts(crawl, HOSTS_SHOWN)
    return as_json(await frontier.stats(crawl), now) | {"hosts": msgspec.to_builtins(hosts)}


async def _view(frontier: Frontier, crawl: str | None) -> RenderableType:
    now = time.time()
    if crawl is None:
        crawls = await frontier.crawls()
        return display.crawls_table(crawls) if crawls else "no crawls here yet"
    stats = display.status_table(await frontier.stats(crawl), now)
    return Group(stats, display.hosts_table(await frontier.hosts(crawl, HOSTS_SHOWN), now))
