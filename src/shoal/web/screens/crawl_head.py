"""The head that all tabs of a crawl share: its name, its state and the main figures."""

from __future__ import annotations

import shlex
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from shoal.frontier.values import CrawlState
from shoal.insight.figures import duration
from shoal.insight.rows import eta
from shoal.insight.status import (
    Snapshot,
    block_rate,
    duplicate_rate,
    elapsed_s,
    failure_concentration,
)
from shoal.insight.troubles import troubles
from shoal.web.api.crawls import crawl_of
from shoal.web.context import Context
from shoal.web.screens.crawls import share_ended
from shoal.web.screens.live import Live
from shoal.web.screens.pages import ScreenContent

DAY_S = 86_400.0
TABS = ("", "hosts", "workers", "failures", "active", "items", "exits", "sessions", "rules")

COUNTED = {"workers": "workers", "failures": "failed", "active": "leased", "items": "items"}
"""The tabs with a number beside their name, and the text that has this number."""

AddTab = Callable[[Context, web.Request, Snapshot, Live], Awaitable[dict[str, Any]]]


async def look_at_tab(
    context: Context, request: web.Request, tab: str, add: AddTab
) -> ScreenContent:
    """A crawl's head, and what `add` puts into this tab."""
    crawl, now = crawl_of(request), time.time()
    seen = await context.sampler.crawl(crawl)
    live = head(seen, now)
    more = await add(context, request, seen, live)
    tabs = [one for one in TABS if _has(one, seen)]
    return ScreenContent(
        title=crawl,
        live=live,
        more={
            "crawl": crawl,
            "stats": seen.stats,
            "tab": tab,
            "tabs": tabs,
            "counted_tabs": COUNTED,
        }
        | more,
    )


def _has(tab: str, seen: Snapshot) -> bool:
    """Whether a crawl has this tab: those of exits and sessions only if its rules name some."""
    rules = seen.stats.rules
    return bool({"exits": rules.pools, "sessions": rules.sessions}.get(tab, True))


def head(seen: Snapshot, now: float) -> Live:
    """The main figures of a crawl."""
    stats = seen.stats
    wrong = [*troubles(stats, len(seen.workers)), *([seen.late] if seen.late else [])]
    started = stats.started_at
    return Live(
        text={
            "state": str(stats.state),
            "total": f"{stats.added:,}",
            "done": f"{stats.done:,}",
            "failed": f"{stats.dead:,}",
            "left": f"{stats.remaining:,}",
            "items": f"{stats.items:,}",
            "leased": f"{stats.leased:,}",
            "speed": f"{stats.pages_per_s:,.1f}" if stats.state.live else "–",
            "eta": eta(stats) or "over",
            "elapsed": duration(elapsed_s(stats, now)) if started else "–",
            "started": _clock(started, now) if started else "not yet",
            "duplicates": f"{duplicate_rate(stats):.1%}",
            "blocked": f"{block_rate(stats):.1%}",
            "concentration": f"{failure_concentration(seen):.0%}",
            "workers": f"{len(seen.workers):,}",
            "wrong": " · ".join(wrong),
            "advice": _advice(seen),
        },
        kinds={"state": str(stats.state), "failed": "bad" if stats.dead else ""},
        shares={"ended": share_ended(stats)},
    )


def _advice(seen: Snapshot) -> str:
    """How to start a crawl that nobody works on. Empty if there is nothing to do."""
    stats, name = seen.stats, shlex.quote(seen.stats.crawl)
    if stats.state is CrawlState.NEW:
        return f"Nobody has started it. Its seeds wait for: shoal crawl spider.py --name {name}"
    if stats.state is CrawlState.RUNNING and stats.remaining and not seen.workers:
        return f"Go on with it: shoal crawl spider.py --name {name}"
    return ""


def _clock(moment: float, now: float) -> str:
    shown = "%H:%M" if now - moment < DAY_S else "%d %b"
    return datetime.fromtimestamp(moment, UTC).strftime(shown)
