"""The screens of workers and hosts, of all crawls under way."""

from __future__ import annotations

import time

from aiohttp import web

from shoal.errors import UnknownCrawl
from shoal.frontier.values import Host, HostOrder, Pulse
from shoal.insight.rows import host_row, worker_row
from shoal.web.context import Context
from shoal.web.routes import query_of
from shoal.web.screens.crawl import Order
from shoal.web.screens.crawls import LOOKED_INTO
from shoal.web.screens.live import AnyCell, Cell, Live, table, with_note
from shoal.web.screens.pages import ScreenContent, screen

WORKERS = 500
HOSTS = 200
HOSTS_OF_ONE = 50


async def workers(context: Context, request: web.Request) -> ScreenContent:
    """The workers of all crawls under way."""
    found: list[tuple[str, Pulse]] = []
    looked_into, note = await _under_way(context)
    for crawl in looked_into:
        try:
            found += [(crawl, pulse) for pulse in await context.frontier.workers(crawl)]
        except UnknownCrawl:  # It was forgotten since it was listed.
            continue
    rows: list[list[AnyCell]] = [
        _with_crawl(context, crawl, "workers", worker_row(pulse)) for crawl, pulse in found
    ]
    live = Live(
        text={
            "workers": f"{len({pulse.worker for _, pulse in found}):,}",
            "flight": f"{sum(pulse.in_flight for _, pulse in found):,}",
            "speed": f"{sum(pulse.pages_per_s for _, pulse in found):,.1f}",
        },
        tables={"workers": with_note(table(rows, WORKERS), note)},
    )
    return ScreenContent(title="Workers", live=live)


async def hosts(context: Context, request: web.Request) -> ScreenContent:
    """The first hosts of each crawl under way, in one list."""
    order, now = query_of(request, Order).order, time.time()
    found: list[tuple[str, Host]] = []
    looked_into, note = await _under_way(context)
    for crawl in looked_into:
        try:
            own = await context.frontier.hosts(crawl, HOSTS_OF_ONE, order)
        except UnknownCrawl:
            continue
        found += [(crawl, host) for host in own]
    found.sort(key=lambda each: -_weight(each[1], order))
    rows: list[list[AnyCell]] = [
        _with_crawl(context, crawl, "hosts", host_row(host, now)) for crawl, host in found
    ]
    live = Live(tables={"hosts": with_note(table(rows, HOSTS), note)})
    fails = order is HostOrder.FAILING
    nothing = "No host fails." if fails else "No crawl under way has a host yet."
    more = {"order": order, "orders": list(HostOrder), "nothing": nothing}
    return ScreenContent(title="Hosts", live=live, more=more)


def _with_crawl(context: Context, crawl: str, tab: str, row: tuple[str, ...]) -> list[AnyCell]:
    """A row of a crawl's tab, with the crawl as its second cell."""
    return [row[0], Cell(crawl, h=context.url("crawls", crawl, tab)), *row[1:]]


def _weight(host: Host, order: HostOrder) -> float:
    if order is HostOrder.SLOWEST:
        return host.latency_s
    return host.failed if order is HostOrder.FAILING else host.waiting + host.leased


async def _under_way(context: Context) -> tuple[list[str], str]:
    """The newest `LOOKED_INTO` crawls under way, and a note if there are more."""
    crawls = [stats.crawl for stats in await context.sampler.crawls() if stats.state.live]
    note = f"Of the newest {LOOKED_INTO} of {len(crawls):,} crawls under way."
    return crawls[:LOOKED_INTO], note if len(crawls) > LOOKED_INTO else ""


ROUTES = (
    *screen("/workers", "workers.html", workers, "workers"),
    *screen("/hosts", "hosts.html", hosts, "hosts"),
)
