"""Serves metrics for Prometheus, the wanted number of workers, and the alerts of the leader."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from aiohttp import web

from shoal.alerts.config import load_alerts
from shoal.alerts.messages import alert_json
from shoal.alerts.notes import alerts_now, alerts_past
from shoal.alerts.sending import try_routes
from shoal.errors import MissingExtra
from shoal.insight.exposition import scrape
from shoal.runtime.process import machine_name
from shoal.web.api.crawls import NoQuery, crawl_of
from shoal.web.api.forms import Page
from shoal.web.context import Context
from shoal.web.problems import Problem
from shoal.web.routes import Route, json_response, query_of

OPENMETRICS = "application/openmetrics-text"


class MetricsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Optional metrics."""

    hosts: bool = False
    """Whether to include, for each crawl, the ten hosts with the most work left."""


class AlertsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which alerts to list."""

    past: bool = False
    """Whether to list resolved alerts instead of pending and firing ones."""


async def metrics(context: Context, request: web.Request) -> web.StreamResponse:
    """The metrics of all crawls, in a format of Prometheus."""
    hosts = query_of(request, MetricsQuery).hosts
    # Reduced to two values, because each different one is a question of its own to the sampler.
    accept = OPENMETRICS if OPENMETRICS in request.headers.get("Accept", "") else ""

    async def look() -> tuple[bytes, str]:
        return await scrape(
            context.frontier, time.time(), accept=accept, hosts=hosts, wanted=context.wanted
        )

    try:
        body, media = await context.sampler.ask(("metrics", hosts, accept), look)
    except MissingExtra as error:
        raise Problem(501, str(error)) from None
    return web.Response(body=body, headers={"Content-Type": media})


class ScaleForm(msgspec.Struct):
    """How many workers a crawl should have from now on."""

    workers: int
    why: str


async def scale(context: Context, request: web.Request) -> web.StreamResponse:
    """How many workers a crawl should have, by the rule of `shoal autoscale`."""
    query_of(request, NoQuery)
    crawl = crawl_of(request)
    decided = await context.sampler.ask(("scale", crawl), lambda: context.wanted.of(crawl))
    return json_response(ScaleForm(decided.workers, decided.why))


class TestedForm(msgspec.Struct):
    """The outcome of sending a test by a route."""

    route: str
    failure: str
    """Why the test was not delivered. Empty if it was."""


async def send_test(context: Context, name: str) -> TestedForm:
    """Send a test by one route of the shoal.toml that this server reads. Raises Problem."""
    routes = load_alerts(context.folder).routes
    if name not in routes:
        raise Problem(404, f"no route {name!r} in shoal.toml here")
    failures = await try_routes({name: routes[name]}, machine_name(), time.time())
    return TestedForm(name, failures.get(name, ""))


async def try_route(context: Context, request: web.Request) -> web.StreamResponse:
    """Send a test by the route that the path names, and return the outcome."""
    return json_response(await send_test(context, request.match_info["name"]))


async def list_alerts(context: Context, request: web.Request) -> web.StreamResponse:
    """The pending and firing alerts, or those that were resolved."""
    notes = context.frontier.notes
    is_past = query_of(request, AlertsQuery).past
    found = await (alerts_past(notes) if is_past else alerts_now(notes))
    return json_response(Page(items=[alert_json(one) for one in found], total=len(found)))


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        answer=metrics,
        summary="All crawls, as Prometheus reads them",
        query=MetricsQuery,
        gives_media=("text/plain", OPENMETRICS),
    ),
    Route(
        method="GET",
        path="/api/v1/scale/{crawl}",
        answer=scale,
        summary="How many workers a crawl should have; also by the name of a schedule",
        query=NoQuery,
        gives=ScaleForm,
    ),
    Route(
        method="GET",
        path="/api/v1/alerts",
        answer=list_alerts,
        summary="Alerts that are pending or firing, or were resolved",
        query=AlertsQuery,
        gives=Page[dict[str, Any]],
    ),
    Route(
        method="POST",
        path="/api/v1/alerts/routes/{name}/test",
        answer=try_route,
        summary="Send a test by a route",
        gives=TestedForm,
        # Endless, because a test is tried three times, which may take longer than other answers.
        is_endless=True,
    ),
)
