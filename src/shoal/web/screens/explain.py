"""The screen Explain: what became of a URL."""

from __future__ import annotations

import msgspec
from aiohttp import web

from shoal.errors import ConfigError, UnknownCrawl
from shoal.insight.explain import Explanation, explain
from shoal.insight.explain_rows import explanation_rows
from shoal.web.api.archived import download_page
from shoal.web.context import Context
from shoal.web.routes import Route, query_of
from shoal.web.screens.pages import page


class Question(msgspec.Struct):
    """Which URL of which crawl to explain."""

    crawl: str = ""
    url: str = ""


async def look(context: Context, request: web.Request) -> web.Response:
    """The form, and the answer if a crawl and a URL were given."""
    question = query_of(request, Question)
    crawls = [stats.crawl for stats in await context.sampler.crawls()][:500]
    explanations: list[Explanation] = []
    wrong = ""
    if question.crawl and question.url:
        try:
            first = await explain(
                context.frontier, context.results, question.crawl, question.url.strip()
            )
            explanations = [first, *first.others]
        except (ConfigError, UnknownCrawl) as error:
            wrong = str(error)
    answers = [(each, list(explanation_rows(each))) for each in explanations]
    return await page(
        context, request, "explain.html", title="Explain", current="explain",
        question=question, crawls=crawls, answers=answers, wrong=wrong,
        has_archive=context.settings.archive is not None,
    )  # fmt: skip


ROUTES = (
    Route(method="GET", path="/explain", answer=look),
    # As in the API, but what goes wrong is shown as a page.
    Route(method="GET", path="/crawls/{crawl}/archived", answer=download_page, is_endless=True),
)
