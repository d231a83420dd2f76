"""The tabs of a crawl with its failures, its active tasks and its items."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from aiohttp import web

from shoal.errors import ConfigError
from shoal.insight.figures import duration
from shoal.insight.status import Snapshot
from shoal.web.api.dead import DeadQuery, dead_page
from shoal.web.api.export import ItemsQuery, items_page
from shoal.web.context import Context
from shoal.web.problems import Problem
from shoal.web.screens.live import Cell, Live, TableRows, capped, table, with_note

ACTIVE = 100
SHOWN = 50
KINDS = 20


async def failures(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """Failed tries by kind and host, the causes of death, and a page of dead tasks. That page does
    not refresh, so that its rows do not move while somebody selects some."""
    crawl = seen.stats.crawl

    def chosen_by(**query: str) -> str:
        return context.url("crawls", crawl, "failures", query=query)

    kinds = sorted(seen.stats.failures_by_kind.items(), key=lambda kind: -kind[1])
    live.tables["kinds"] = _ranked(
        [(Cell(kind, h=chosen_by(kind=kind)), tries) for kind, tries in kinds]
    )
    live.tables["failing"] = _ranked(
        [(Cell(one.host, h=chosen_by(host=one.host)), one.failed) for one in seen.failing]
    )
    live.tables["causes"] = _causes(seen)
    if request.path.startswith(f"{context.prefix}/live/"):
        return {}
    query = dead_query(request)
    page = await dead_page(context, crawl, query)
    chosen = {"kind": query.kind or "", "host": query.host or ""}
    chosen = {name: value for name, value in chosen.items() if value}
    more = chosen_by(**chosen, cursor=page.cursor) if page.cursor else None
    return {"dead": page, "chosen": chosen, "next_page": more, "reloads": False}


def _causes(seen: Snapshot) -> TableRows:
    """What tasks died of, with a note if only the latest of many dead tasks were analysed."""
    ranked = _ranked([(Cell(one.cause), one.count) for one in seen.causes])
    looked_at = sum(cause.count for cause in seen.causes)
    is_part = looked_at < seen.stats.dead
    return with_note(ranked, f"Of the last {looked_at:,} dead tasks." if is_part else "")


def _ranked(counts: list[tuple[Cell, int]]) -> TableRows:
    """A table of counts in descending order, with bars relative to the first one."""
    most = max((count for _, count in counts), default=1) or 1
    return table([(name, f"{count:,}", Cell(b=count / most)) for name, count in counts], KINDS)


def dead_query(request: web.Request) -> DeadQuery:
    """Which dead tasks to show. Raises Problem if the query is not valid."""
    names = DeadQuery.__struct_fields__
    asked = {name: value for name, value in request.query.items() if value and name in names}
    try:
        return msgspec.convert(asked | {"limit": str(SHOWN)}, DeadQuery, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(400, f"query: {error}") from None


async def active(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """The tasks that workers have leased."""
    now, crawl = time.time(), seen.stats.crawl
    found = await context.frontier.leased(crawl, ACTIVE + 1)
    rows = [
        (
            Cell(one.url, h=context.url("explain", query={"crawl": crawl, "url": one.url})),
            one.worker,
            duration(max(now - one.since, 0.0)),
            f"in {duration(one.expires - now)}" if one.expires > now else "now",
            f"{one.tries:,}",
        )
        for one in found
    ]
    live.tables["active"] = capped(rows, ACTIVE)
    return {}


async def items(
    context: Context, request: web.Request, seen: Snapshot, live: Live
) -> dict[str, Any]:
    """How many items of each kind there are, and a page of them, in the order of the API."""
    if request.path.startswith(f"{context.prefix}/live/"):
        return {}
    crawl, kind = seen.stats.crawl, request.query.get("kind") or None
    cursor = request.query.get("cursor") or None
    try:
        page = await items_page(context, crawl, ItemsQuery(kind, SHOWN, cursor))
        counts = await context.results.count(crawl)
    except ConfigError as error:  # A store that only passes results on cannot be queried.
        nothing: dict[str, Any] = {"counts": {}, "items": [], "next_page": None}
        return {**nothing, "note": str(error), "kind": kind, "reloads": False}
    found = page.items
    total = sum(counts.values()) if kind is None else counts.get(kind, 0)
    note = f"{len(found):,} of {total:,}." if total > len(found) else ""
    shown = [(one.kind, one.key, one.url, one.data.decode("utf-8", "replace")) for one in found]
    asked = {name: value for name, value in (("kind", kind), ("cursor", page.cursor)) if value}
    return {
        "counts": counts,
        "items": shown,
        "note": note,
        "kind": kind,
        "next_page": page.cursor and context.url("crawls", crawl, "items", query=asked),
        "reloads": False,
    }
