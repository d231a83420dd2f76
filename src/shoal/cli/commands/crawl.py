"""shoal crawl: runs a crawl to its end on this machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.arguments import ArgumentOptions, load_spider
from shoal.cli.crawled_items import check_output, write_items
from shoal.cli.examples import examples
from shoal.cli.options import FLEET, JsonFlag, with_settings
from shoal.cli.several import are_several, crawl_several
from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.fleet.crawl import run_crawl
from shoal.fleet.summary import Summary
from shoal.frontier.values import CrawlState
from shoal.insight.figures import counted
from shoal.insight.json import summary_json
from shoal.insight.moments import day
from shoal.results import STREAM_SCHEMES
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.spider.spider import Spider

AT_ONCE = 4

Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET", help="file.py[:Class], package.module:Class, scrapy:SPIDER, or URLs."
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start over: forget what this crawl has done and found.")
]
AllSpiders = Annotated[
    bool, typer.Option("--all", help="Run all spiders of TARGET: a folder, a file or a module.")
]
Parallel = Annotated[int, typer.Option(min=1, metavar="N", help="How many spiders run at a time.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the items to this file at the end: .jsonl, .csv or .parquet.",
    ),
]


@with_settings(*FLEET)
@examples(
    "shoal crawl spider.py",
    "shoal crawl shop/spiders.py:Shop --workers 4 --rate 5/s",
    "shoal crawl spider.py -o items.csv",
    "shoal crawl shop.py -a category=books -a limit=50",
    "shoal crawl shops/ --all --parallel 8",
    "shoal crawl https://example.com --max-pages 100",
    "shoal crawl spider.py --name shop-tuesday --previous shop-monday",
    "shoal crawl spider.py --publish amqp://user:secret@rabbit",
)
def crawl(
    targets: Targets,
    options: dict[str, Any],
    arg: ArgumentOptions = None,
    fresh: Fresh = False,
    all_spiders: AllSpiders = False,
    parallel: Parallel = AT_ONCE,
    output: Output = None,
    json: JsonFlag = False,
) -> None:
    """Run a crawl to its end on this machine.

    Several targets, or all spiders of a folder (--all), are separate crawls that run side by side.
    A table shows how each of them ended; the exit code is that of the worst.

    To continue a crawl that stopped half-way, run the same command again. If TARGET is one or
    more URLs, all links on their hosts are followed, and one item is stored for each page.

    Exit codes: 0 finished; 3 finished, but some tasks are dead; 1 stopped before the end; 2 usage
    error.
    """
    if all_spiders or are_several(targets):
        raise typer.Exit(
            crawl_several(
                targets,
                arg,
                options,
                is_all=all_spiders,
                at_once=parallel,
                fresh=fresh,
                json=json,
                output=output,
            )
        )
    targets, spider, settings = load_spider(targets, arg, options)
    if output is not None:
        check_output(output, settings)
    again = "this command without --fresh" if fresh else "this command"
    summary = run_and_show(
        spider, settings, targets, fresh=fresh, again=again, json=json, output=output
    )
    raise typer.Exit(summary.exit_code)


def run_and_show(
    spider: type[Spider],
    settings: Settings,
    targets: list[str],
    *,
    fresh: bool,
    again: str | None,
    json: bool,
    output: Path | None = None,
) -> Summary:
    """Run a crawl with a progress line, print how it ended, and write its items if asked to.
    `again` is the command that continues the crawl, if there is one."""
    logs.configure(json_lines=settings.json_logs)
    with display.progress(quiet=settings.json_logs and json) as watch:
        summary = run(run_crawl(spider, settings, targets=targets, fresh=fresh, watch=watch))
    if json:
        display.print_json(summary_json(summary))
    else:
        display.out().print(display.summary_table(summary))
        for line in _hints(summary, settings, again, has_output=output is not None):
            display.say(line)
    if output is not None:
        write_items(output, settings, summary)
    return summary


def _hints(
    summary: Summary, settings: Settings, again: str | None, *, has_output: bool
) -> list[str]:
    stats, crawl = summary.stats, shlex.quote(summary.stats.crawl)
    results, frontier = _options(settings, "results"), _options(settings, "frontier", "state")
    hints = []
    if summary.finished_before is not None:
        finished = f"{stats.crawl} finished on {day(summary.finished_before, time.time())}"
        anew = f"--name X --previous {crawl} crawls again"
        hints.append(f"nothing new: {finished}. --fresh starts over; {anew}")
    elif summary.finished and not stats.added:
        hints.append(f"there was no URL to start with: shoal seed {crawl} URL{frontier} adds one")
    if settings.results.partition(":")[0] in STREAM_SCHEMES:
        hints.append(f"the items: shoal drain{results} --to STORE")
    elif summary.items and not has_output:
        hints.append(f"the items: shoal export {crawl} -o items.jsonl{results}")
    if stats.rejected and summary.rejections:
        hints.append(f"what was rejected: shoal rejected list {crawl}{results}")
    if stats.dead:
        died = counted(stats.dead, "task")
        hints.append(f"why {died} died: shoal dead list {crawl}{frontier}")
    return hints if again is None else [*hints, *_next_steps(summary, frontier, again)]


def _next_steps(summary: Summary, frontier: str, again: str) -> Iterator[str]:
    """How to continue the crawl."""
    stats, crawl = summary.stats, shlex.quote(summary.stats.crawl)
    if stats.dead:
        yield f"to try again: shoal dead retry {crawl}{frontier}, then {again}"
    if stats.state is CrawlState.PAUSED:
        yield f"it is paused: shoal resume {crawl}{frontier}, then {again}"
    elif not summary.finished:
        yield f"to continue: run {again}"
    elif stats.remaining:
        yield f"{stats.remaining:,} URLs are left: to continue, raise --max-pages"


def _options(settings: Settings, *names: str) -> str:
    """The options with which another command uses the same stores as this one."""
    usual = Settings()
    given = {name: getattr(settings, name) for name in names}
    return "".join(
        f" --{name} {shlex.quote(masked(value))}"
        for name, value in given.items()
        if value != getattr(usual, name)
    )
