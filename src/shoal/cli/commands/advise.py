"""shoal advise: what limits a crawl, how many workers are enough, how long it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import waiting
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, JsonFlag, existing_stores, with_settings
from shoal.config import Settings
from shoal.core.plaintext import one_line
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.insight.advise.advice import Advice, advice, curves
from shoal.insight.advise.chart import plot as svg_of
from shoal.insight.advise.look import see
from shoal.insight.advise.prices import Prices, load_prices
from shoal.insight.advise.rendering import WHAT_IF_COLUMNS, advice_json, what_if_rows
from shoal.insight.advise.situation import Situation
from shoal.insight.advise.what_if import MAX_WHAT_IFS, WhatIf, parse_what_if
from shoal.insight.advise.words import limit_words, rows
from shoal.insight.moments import parse_deadline
from shoal.runtime.eventloop import run

Deadline = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="How many workers it takes to finish by then: 6h, or 2030-01-31T08:00 (UTC).",
    ),
]
WhatIfs = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if",
        metavar="CHANGES",
        help="How long it would take with workers=8, rate=5/s, concurrency=64,"
        " concurrency_per_host=32, exits=2x, stores=2x, or several of these, separated by commas."
        " May be repeated.",
    ),
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE.svg", help="Draw time over workers as SVG.")
]


@with_settings("frontier")
@examples(
    "shoal advise shop",
    "shoal advise shop --deadline 6h",
    "shoal advise shop --what-if workers=8 --what-if workers=8,rate=5/s --plot plan.svg",
    "shoal advise shop --json | jq .enough.workers",
)
def advise(
    crawl: CrawlName,
    options: dict[str, Any],
    deadline: Deadline = None,
    what_if: WhatIfs = None,
    plot: Plot = None,
    json: JsonFlag = False,
) -> None:
    """Show what limits a crawl, and what would help.

    It looks at a running crawl for some seconds, and changes nothing. Prices are those of [prices]
    in shoal.toml. It never advises asking more of a host than robots.txt allows, or than the host
    answers.
    """
    prices = load_prices()
    asked = _what_ifs(what_if or [])
    due = None if deadline is None else parse_deadline(deadline, time.time())
    if plot is not None and plot.suffix.lower() != ".svg":
        raise ConfigError(f"--plot {plot}: plots are SVG, so the name must end in .svg")
    seen = run(_see(existing_stores(options), crawl))
    answer = advice(seen, due, asked, prices)
    if json:
        display.print_json(advice_json(answer, prices))
    else:
        _show(answer, prices)
    if plot is not None:
        _draw(plot, answer, asked, prices)


def _what_ifs(texts: Sequence[str]) -> list[WhatIf]:
    if len(texts) > MAX_WHAT_IFS:
        raise ConfigError(f"--what-if: at most {MAX_WHAT_IFS}")
    return [parse_what_if(text) for text in texts]


async def _see(stores: Settings, crawl: str) -> Situation:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        with waiting(f"looking at {crawl}"):
            return await see(frontier, crawl)


def _show(answer: Advice, prices: Prices) -> None:
    display.out().print(display.facts(answer.situation.crawl, rows(answer, prices)))
    if answer.advised is not None and answer.advised.what_ifs:
        cost = ("cost",) if answer.advised.now.cost else ()
        table = display.table((*WHAT_IF_COLUMNS, *cost), what_if_rows(answer, prices))
        display.out().print(table)


def _draw(file: Path, answer: Advice, asked: Sequence[WhatIf], prices: Prices) -> None:
    advised, situation = answer.advised, answer.situation
    if advised is None:
        display.say(f"nothing to draw: {rows(answer, prices)[0][1]}", err=True)
        return
    note = f"{situation.remaining:,} pages; {limit_words(advised.most, advised.fleet)}"
    title = one_line(f"{situation.crawl}: time over workers")
    picture = svg_of(title, one_line(note), advised, curves(situation, asked, prices))
    try:
        file.write_text(picture, "utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    display.say(f"drawn: {file}", err=True)
