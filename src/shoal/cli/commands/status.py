"""shoal status: shows counters, rates, ETA, workers and hosts."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.live import Live

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, existing_stores, with_settings
from shoal.cli.status_view import snapshot_view, watched_view
from shoal.config import Settings
from shoal.errors import StorageBusy
from shoal.frontier import frontier_at
from shoal.frontier.port import QueriesAndNotes
from shoal.insight.json import crawl_json, snapshot_json
from shoal.insight.status import snapshot
from shoal.insight.status_lines import note_lines
from shoal.runtime.eventloop import run

WATCH_EVERY_S = 1.0

Crawl = Annotated[
    str | None, typer.Argument(metavar="CRAWL", help="The crawl's name. [default: all crawls]")
]
WatchFlag = Annotated[bool, typer.Option("--watch", help="Refresh in place until Ctrl-C.")]


@with_settings("frontier")
@examples(
    "shoal status",
    "shoal status shop --watch",
    "shoal status shop --json | jq .done",
)
def status(
    options: dict[str, Any], crawl: Crawl = None, watch: WatchFlag = False, json: JsonFlag = False
) -> None:
    """Show progress, speed and ETA, workers and hosts.

    Problems come first. Hosts with the most work left are listed first, then those that answer
    slowest, then those that fail most. A host that only fails is probed with single requests until
    it answers again.
    """
    run(_status(existing_stores(options), crawl, watch=watch, json=json))


async def _status(stores: Settings, crawl: str | None, *, watch: bool, json: bool) -> None:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        if json:
            display.print_json(await _data(frontier, crawl))
        elif watch:
            await _watch(frontier, crawl)
        else:
            display.out().print(await _view(frontier, crawl))


async def _watch(frontier: QueriesAndNotes, crawl: str | None) -> None:
    console = display.console()
    view = await _view(frontier, crawl, console.height)
    # What does not fit is cut off at the bottom, below what matters.
    with Live(view, console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            try:
                view = await _view(frontier, crawl, console.height)
            except StorageBusy as error:  # It may come back. Until then, the last view stays.
                console.print(display.text(f"waiting for the frontier: {error}", "red"))
            else:
                live.update(view, refresh=True)


async def _data(frontier: QueriesAndNotes, crawl: str | None) -> Any:
    now = time.time()
    if crawl is None:
        return [crawl_json(stats, now) for stats in await frontier.crawls()]
    return snapshot_json(await snapshot(frontier, crawl, now), now)


async def _view(
    frontier: QueriesAndNotes, crawl: str | None, height: int | None = None
) -> RenderableType:
    """What is shown. The view of one crawl fits into `height` lines, if that is given."""
    now = time.time()
    if crawl is None:
        crawls = await frontier.crawls()
        return display.crawls_table(crawls, now) if crawls else display.text("no crawls here yet")
    seen = await snapshot(frontier, crawl, now)
    notes = note_lines(seen, now)
    if height is None:
        return snapshot_view(seen, now, notes)
    return watched_view(seen, now, notes, height)
