"""shoal explain: shows what became of one URL."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import STORES, CrawlName, JsonFlag, existing_stores, with_settings
from shoal.config import Settings
from shoal.fleet.stores import stores_at
from shoal.insight.explain import Explanation
from shoal.insight.explain import explain as explain_url
from shoal.insight.explain_rows import explanation_rows
from shoal.insight.json import explanation_json
from shoal.runtime.eventloop import run

SomeSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="The page as these accounts see it: a group, or one account (shop#alice); none: with"
        " no account. [default: the crawl's]",
    ),
]


@with_settings(*STORES)
@examples(
    "shoal explain shop 'https://shop.example/product/17?utm_source=x'",
    "shoal explain shop https://shop.example/orders --session shop#alice",
)
def explain(
    crawl: CrawlName,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address, in any spelling.")],
    options: dict[str, Any],
    session: SomeSession = None,
    json: JsonFlag = False,
) -> None:
    """Explain what became of a URL, step by step.

    Two accounts may see two different pages, so each session has a task of its own. The one of
    --session comes first, then the others at this address.
    """
    explanation = run(ask(existing_stores(options), crawl, url, session))
    if json:
        display.print_json(explanation_json(explanation))
    else:
        show_explanation(explanation)


async def ask(settings: Settings, crawl: str, url: str, session: str | None = None) -> Explanation:
    """What the stores of these settings know of a URL."""
    async with stores_at(settings, archive=False) as stores:
        return await explain_url(stores.frontier, stores.results, crawl, url, session)


def show_explanation(explanation: Explanation) -> None:
    """Print tables for people."""
    for task in (explanation, *explanation.others):
        _show_one(task)


def _show_one(explanation: Explanation) -> None:
    display.out().print(display.facts(explanation.url, list(explanation_rows(explanation))))
    record = explanation.record
    if record is not None and record.detail:
        display.say_lines(record.detail)
