"""Handles what people do to a crawl: pause, resume, cancel, seed and forget it."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from shoal.frontier.values import Control, Stats
from shoal.insight.figures import counted
from shoal.web.api.crawls import control, crawl_of, forget
from shoal.web.api.seeds import MAX_SEEDS, add_seeds, each_line
from shoal.web.context import Context
from shoal.web.problems import LineError, Problem
from shoal.web.routes import Route
from shoal.web.screens.confirmation import Question, ask, back_to
from shoal.web.screens.pages import page

MADE = "made"
"""The form field with the crawl's creation time, which differs if it was started over."""


def steering(action: Control) -> Any:
    """The handler that pauses or resumes a crawl, and goes back to its page."""

    async def steer(context: Context, request: web.Request) -> web.StreamResponse:
        crawl = crawl_of(request)
        await control(context, crawl, action)
        return back_to(context, crawl)

    return steer


async def ask_cancel(context: Context, request: web.Request) -> web.StreamResponse:
    """Ask for confirmation, with the number of tasks that would be dropped."""
    crawl = crawl_of(request)
    stats = await context.frontier.stats(crawl)
    if stats.state.over:
        raise Problem(409, f"crawl '{crawl}' is {stats.state} already")
    question = Question(
        title=f"Cancel this crawl: {counted(stats.remaining, 'task')} will be dropped",
        effect="What was stored stays. A cancelled crawl is not resumed; --fresh starts it over.",
        button="Cancel the crawl",
        fields=[(MADE, _made(stats))],
    )
    return await ask(context, request, crawl, question)


async def cancel(context: Context, request: web.Request) -> web.StreamResponse:
    """Cancel the crawl, and show how many tasks were dropped."""
    crawl = crawl_of(request)
    before = await _asked_about(context, request, crawl)
    await control(context, crawl, Control.CANCEL)
    dropped = (await context.frontier.stats(crawl)).dropped - before.dropped
    return back_to(context, crawl, did="cancelled", count=str(max(dropped, 0)))


async def ask_forget(context: Context, request: web.Request) -> web.StreamResponse:
    """Ask for confirmation, with the number of tasks that would be deleted."""
    crawl = crawl_of(request)
    stats = await context.frontier.stats(crawl)
    if not stats.state.over:
        raise Problem(409, f"crawl '{crawl}' is {stats.state}: cancel it first")
    question = Question(
        title=f"Forget this crawl: its queue of {counted(stats.added, 'task')} will be deleted",
        effect="Its results stay. With its queue goes what it has seen, and why tasks have died.",
        button="Forget the crawl",
        fields=[(MADE, _made(stats))],
    )
    return await ask(context, request, crawl, question)


async def forget_it(context: Context, request: web.Request) -> web.StreamResponse:
    """Forget a crawl that is over."""
    await _asked_about(context, request, crawl_of(request))
    await forget(context, request)
    return web.Response(status=303, headers={"Location": context.url()})


async def _asked_about(context: Context, request: web.Request, crawl: str) -> Stats:
    """The crawl's counters. Raises Problem if it was started over since the person was asked."""
    asked_about, stats = (await request.post()).get(MADE), await context.frontier.stats(crawl)
    if asked_about != _made(stats):
        raise Problem(409, f"crawl '{crawl}' was started over since you were asked")
    return stats


def _made(stats: Stats) -> str:
    return repr(stats.created_at)


async def ask_seeds(context: Context, request: web.Request) -> web.StreamResponse:
    """Show the form for seeds."""
    return await _seed_page(context, request)


async def seed(context: Context, request: web.Request) -> web.StreamResponse:
    """Add the lines of a form. If some are wrong, show these, and keep all lines in the form: seeds
    that were added already do no harm when they are sent again."""
    crawl = crawl_of(request)
    text = str((await request.post()).get("seeds", ""))
    lines = text.splitlines()
    if len(lines) > MAX_SEEDS:
        raise Problem(413, f"at most {MAX_SEEDS:,} lines; the API takes any number")
    try:
        added = await add_seeds(context, crawl, each_line(lines))
    except Problem as problem:
        wrong = problem.details
        return await _seed_page(context, request, wrong.detail, wrong.errors, text, problem.status)
    if added.errors:
        outcome = f"{added.added:,} added, {added.duplicates:,} known already, {added.bad:,} wrong:"
        return await _seed_page(context, request, outcome, added.errors, text)
    known = str(added.duplicates)
    return back_to(context, crawl, did="seeded", count=str(added.added), known=known)


async def _seed_page(
    context: Context,
    request: web.Request,
    outcome: str = "",
    errors: list[LineError] | None = None,
    given: str = "",
    status: int = 200,
) -> web.Response:
    crawl = crawl_of(request)
    return await page(
        context, request, "seed.html", status, title=f"Seed {crawl}", current="crawls",
        crawl=crawl, most=MAX_SEEDS, outcome=outcome, errors=errors or [], given=given,
    )  # fmt: skip


def _get(path: str, answer: Any) -> Route:
    return Route(method="GET", path=f"/crawls/{{crawl}}{path}", answer=answer)


def _post(path: str, answer: Any) -> Route:
    return Route(method="POST", path=f"/crawls/{{crawl}}{path}", answer=answer)


ROUTES = (
    _post("/pause", steering(Control.PAUSE)),
    _post("/resume", steering(Control.RESUME)),
    _get("/cancel", ask_cancel),
    _post("/cancel", cancel),
    _get("/forget", ask_forget),
    _post("/forget", forget_it),
    _get("/seed", ask_seeds),
    _post("/seed", seed),
)
