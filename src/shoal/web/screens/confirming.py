"""Pages that say what will happen to how many, and ask. What they said comes back with the answer:
if that is no longer so, they say so and ask again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from shoal.web.context import Context
from shoal.web.screens.pages import page


class Question(NamedTuple):
    """What somebody is asked."""

    what: str
    told: str
    """What that means."""
    button: str
    fields: Sequence[tuple[str, str]] = ()
    """What comes back with the answer."""
    destroys: bool = True
    tab: str = ""
    """The tab of the crawl that it is about."""
    changed: str = ""
    """What is no longer as it was when somebody said yes."""


async def ask(
    context: Context, request: web.Request, crawl: str, question: Question
) -> web.Response:
    """The page: its form goes to the same address."""
    tab = [question.tab] if question.tab else []
    return await page(
        context,
        request,
        "confirm.html",
        409 if question.changed else 200,
        title=question.what,
        current="crawls",
        crawl=crawl,
        question=question,
        action=request.rel_url.raw_path,
        back=context.url("crawls", crawl, *tab),
    )


def back_to(context: Context, crawl: str, *tab: str, **query: str) -> web.Response:
    """Go on at a crawl's page."""
    place = context.url("crawls", crawl, *tab, query=query)
    return web.Response(status=303, headers={"Location": place})
