"""The screen of a crawl, with its tabs. crawl_head.py has its head; crawl_tasks.py has the tabs of
failures, active tasks and items."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from aiohttp import web

from shoal.frontier.values import HostOrder
from shoal.insight.exit_lines import exit_lines
from shoal.insight.exits import exit_state
from shoal.insight.figures import duration, size
from shoal.insight.rows import host_row, status_rows, worker_row
from shoal.insight.session_lines import rest_of, session_lines
from shoal.insight.sessions import account_state
from shoal.insight.status import Snapshot
from shoal.insight.status_lines import note_lines, slow_lines
from shoal.insight.traps import trap_lines
from shoal.insight.versions import version_lines
from shoal.spider.arguments import shown
from shoal.web.context import Context
from shoal.web.routes import query_of
from shoal.web.screens.charting import Span, charts_of
from shoal.web.screens.crawl_head import AddTab, look_at_tab
from shoal.web.screens.crawl_tasks import active, failures, items
from shoal.web.screens.live import Cell, Live, capped, table
from shoal.web.screens.pages import ScreenContent, screen

HOSTS = 100
WORKERS = 200
EXITS = 500
IN_HEAD = ("state", "speed", "elapsed", "ETA")
"""Rows of `shoal status` that the overview omits, because the head of the page shows them."""


class Order(msgspec.Struct):
    """In which order hosts are listed."""

    order: HostOrder = HostOrder.BUSIEST


async def overview(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The charts and all counters."""
    span, now = query_of(request, Span).span, time.time()
    paths, labels = await charts_of(context, seen.stats.crawl, span, now)
    if seen.stats.state.over:  # A crawl that is over has no current speed.
        labels |= dict.fromkeys(("pages_per_s.now", "failures_per_s.now"), "–")
    live.paths |= paths
    live.text |= labels
    rows = [row for row in status_rows(seen.stats, now) if row[0] not in IN_HEAD]
    traps = trap_lines(seen.traps, seen.stats.rules)
    notes = [("", note) for note in (*note_lines(seen, now), *traps)]
    live.text["slow"] = " · ".join(slow_lines(seen))
    half = -(-len(rows) // 2)
    live.tables |= {"tasks": table(rows[:half], EXITS), "more": table(rows[half:] + notes, EXITS)}
    return {"span": span}


async def hosts(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The crawl's hosts, in the order that was asked for."""
    order, now = query_of(request, Order).order, time.time()
    found = await context.frontier.hosts(seen.stats.crawl, HOSTS + 1, order)
    live.tables["hosts"] = capped([host_row(host, now) for host in found], HOSTS)
    return {"order": order, "orders": list(HostOrder)}


async def workers(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The workers that have recently sent a heartbeat."""
    live.tables["workers"] = table(map(worker_row, seen.workers), WORKERS)
    live.text["lines"] = " · ".join(version_lines(seen.workers))
    return {}


async def exits(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The exits of the crawl's pools."""
    now = time.time()
    listed = [(pool, await context.frontier.exits(pool.rules.name)) for pool in seen.pools]
    live.tables["exits"] = table(
        (
            (
                one.id,
                pool.rules.name,
                Cell(exit_state(one, now), k=exit_state(one, now)),
                f"{one.requests:,}",
                size(one.wire_bytes),
                f"in {duration(one.out_until - now)}" if one.out_until > now else "",
            )
            for pool, exits in listed
            for one in exits
        ),
        EXITS,
    )
    live.text["lines"] = "\n".join(exit_lines(seen, now)) or "None is known to the fleet yet."
    return {}


async def sessions(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The accounts of the crawl's groups."""
    now = time.time()
    live.tables["sessions"] = table(
        (
            (
                one.name,
                Cell(account_state(one, now), k=account_state(one, now).replace(" ", "-")),
                rest_of(one, now),
                f"{one.exit.requests:,}",
                f"{one.state.logins:,}",
                one.state.why,
            )
            for group in seen.sessions
            for one in group.accounts
        ),
        EXITS,
    )
    live.text["lines"] = "\n".join(session_lines(seen, now)) or "None is known to the fleet yet."
    return {}


async def rules(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The crawl's rules."""
    values = msgspec.to_builtins(seen.stats.rules)
    live.tables["rules"] = table([(name, _value(value)) for name, value in values.items()], EXITS)
    return {}


def _value(value: Any) -> str:
    if value in (None, [], (), {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return shown(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _tab(tab: str, add: AddTab) -> tuple[Any, ...]:
    async def look(context: Context, request: web.Request) -> ScreenContent:
        return await look_at_tab(context, request, tab, add)

    path = "/crawls/{crawl}" + (f"/{tab}" if tab else "")
    return screen(path, f"crawl_{tab or 'overview'}.html", look, "crawls")


ROUTES = (
    *_tab("", overview),
    *_tab("hosts", hosts),
    *_tab("workers", workers),
    *_tab("failures", failures),
    *_tab("active", active),
    *_tab("items", items),
    *_tab("exits", exits),
    *_tab("sessions", sessions),
    *_tab("rules", rules),
)
