"""The start screen: all crawls."""

from __future__ import annotations

import time

import msgspec
from aiohttp import web

from shoal.errors import UnknownCrawl
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.rows import eta
from shoal.insight.status import block_rate
from shoal.insight.troubles import troubles
from shoal.web.context import Context
from shoal.web.routes import query_of
from shoal.web.screens.charting import trend_of
from shoal.web.screens.live import AnyCell, Cell, Live, table
from shoal.web.screens.pages import ScreenContent, screen

MOST = 200
LOOKED_INTO = 50
"""How many crawls under way are examined closely: their workers are counted, their trend shown."""


class Search(msgspec.Struct):
    """Which crawls to show."""

    q: str = ""
    state: str = ""


async def look(context: Context, request: web.Request) -> ScreenContent:
    """The crawls with their progress, speed and troubles."""
    search, now = query_of(request, Search), time.time()
    crawls = await context.sampler.crawls()
    found = [
        stats
        for stats in crawls
        if search.state in ("", stats.state) and search.q.lower() in stats.crawl.lower()
    ]
    found.sort(key=lambda stats: not stats.state.live)  # Crawls under way first, then the newest.
    workers = await worker_counts(context, crawls)
    trends = {crawl: await trend_of(context, crawl, now) for crawl in workers}
    live_ones = [stats for stats in crawls if stats.state.live]
    running = sum(stats.state is CrawlState.RUNNING for stats in live_ones)
    live = Live(
        text={
            "running": f"{running:,} of {len(crawls):,}",
            "workers": f"{sum(workers.values()):,}{'+' if len(live_ones) > LOOKED_INTO else ''}",
            "speed": f"{sum(stats.pages_per_s for stats in live_ones):,.1f}",
            "left": f"{sum(stats.remaining for stats in live_ones):,}",
        },
        tables={"crawls": table([_row(context, stats, workers, trends) for stats in found], MOST)},
    )
    more = {"search": search, "states": list(CrawlState), "has_any": bool(crawls)}
    return ScreenContent(title="Crawls", live=live, more=more)


async def worker_counts(context: Context, crawls: list[Stats]) -> dict[str, int]:
    """The number of workers of each crawl under way."""

    async def count() -> dict[str, int]:
        counts = {}
        for stats in [stats for stats in crawls if stats.state.live][:LOOKED_INTO]:
            try:
                counts[stats.crawl] = len(await context.frontier.workers(stats.crawl))
            except UnknownCrawl:  # It was forgotten since it was listed.
                continue
        return counts

    return await context.sampler.ask("worker counts", count)


def _row(
    context: Context, stats: Stats, workers: dict[str, int], trends: dict[str, str]
) -> list[AnyCell]:
    wrong = troubles(stats, workers.get(stats.crawl))
    return [
        Cell(stats.crawl, h=context.url("crawls", stats.crawl)),
        Cell(str(stats.state), k=str(stats.state)),
        Cell(b=share_ended(stats)),
        f"{stats.done:,}",
        f"{stats.added:,}",
        f"{stats.pages_per_s:,.1f}" if stats.state.live else "",
        Cell(p=trends.get(stats.crawl, "")),
        eta(stats),
        f"{count:,}" if (count := workers.get(stats.crawl)) is not None else "",
        Cell(f"{stats.dead:,}", k="bad" if stats.dead else ""),
        f"{block_rate(stats):.1%}" if stats.sent else "",
        Cell(", ".join(wrong), k="bad"),
    ]


def share_ended(stats: Stats) -> float:
    """The share of all known tasks that have ended, from 0 to 1."""
    return round(stats.ended / stats.added, 4) if stats.added else 0.0


ROUTES = (
    *screen("/", "crawls.html", look, "crawls"),
    *screen("/crawls", "crawls.html", look, "crawls"),
)
