"""Shows pages that ask for confirmation before something is deleted, cancelled or retried.

The form carries what the page said, for instance a number of tasks. If that is no longer true when
the answer arrives, the page is shown again with the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from shoal.web.context import Context
from shoal.web.screens.pages import page


class Question(NamedTuple):
    """The content of a page that asks for confirmation."""

    title: str
    effect: str
    """What the action means."""
    button: str
    fields: Sequence[tuple[str, str]] = ()
    """Hidden fields, which come back with the answer."""
    destroys: bool = True
    tab: str = ""
    """The crawl's tab that the link back leads to."""
    changed: str = ""
    """What has changed since the person was asked. Empty at first."""


async def ask(
    context: Context, request: web.Request, crawl: str, question: Question
) -> web.Response:
    """The page that asks. Its form is sent to the same address."""
    tab = [question.tab] if question.tab else []
    return await page(
        context,
        request,
        "confirm.html",
        409 if question.changed else 200,
        title=question.title,
        current="crawls",
        crawl=crawl,
        question=question,
        action=request.rel_url.raw_path,
        back=context.url("crawls", crawl, *tab),
    )


def back_to(context: Context, crawl: str, *tab: str, **query: str) -> web.Response:
    """Redirect to a crawl's page."""
    place = context.url("crawls", crawl, *tab, query=query)
    return web.Response(status=303, headers={"Location": place})
