"""shoal try: reads one page as a crawl would."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from shoal.cli import display
from shoal.cli.arguments import ArgumentOptions, load_spider
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, existing_stores, with_settings
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.fleet import target
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.spider.spider import Spider
from shoal.workbench.kept_pages import cache_folder
from shoal.workbench.one_page import Tried
from shoal.workbench.tracebacks import users_lines
from shoal.workbench.tried_forms import (
    cut_line,
    ending,
    gave_line,
    headline,
    item_rows,
    link_rows,
    rejected_rows,
    tried_json,
)
from shoal.workbench.wanted_page import (
    meta_from,
    task_for,
    try_from_archive,
    try_from_cache,
    try_from_site,
)
from shoal.workbench.watching import again_when_changed

TargetName = Annotated[str, typer.Argument(metavar="TARGET", help="As for `shoal crawl`.")]
Url = Annotated[
    str | None, typer.Argument(metavar="URL", help="The page. [default: the spider's first page]")
]
Handler = Annotated[str | None, typer.Option(help="The handler that reads it. [default: parse]")]
Meta = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A note for page.meta: text or JSON. May be repeated."),
]
FromArchive = Annotated[
    bool, typer.Option("--from-archive", help="Read the page that the crawl has archived.")
]
Cache = Annotated[bool, typer.Option("--cache", help="Fetch the page once, and keep it.")]
Watch = Annotated[
    bool, typer.Option("--watch", help="Run again when the spider changes. Keeps the page.")
]


@with_settings(
    *("name", "archive", "results", "allow_private", "robots", "proxies", "accounts"),
    *("user_agent", "timeout_s", "plugins"),
)
@examples(
    "shoal try shop.py https://shop.example/product/17 --handler product",
    "shoal try shop.py https://shop.example/catalog --watch",
    "shoal try shop.py https://shop.example/product/17 --from-archive",
)
def try_(
    spider: TargetName,
    options: dict[str, Any],
    url: Url = None,
    arg: ArgumentOptions = None,
    handler: Handler = None,
    meta: Meta = None,
    from_archive: FromArchive = False,
    cache: Cache = False,
    watch: Watch = False,
    json: JsonFlag = False,
) -> None:
    """Show what the spider makes of one page.

    The page is fetched as in a crawl: with robots.txt, exits, accounts and hooks. It shows items as
    they would be stored, items that would be rejected, and tasks with what a crawl would do with
    them. Nothing is queued or stored. What a crawl has seen before does not count.

    Exit codes: 0 the page was read; 1 it was not, or the handler raised; 2 usage error.
    """
    if watch:
        again_when_changed(spider, display.say)
        return
    _, loaded, settings = load_spider([spider], arg, options)
    if target.is_scrapy([spider]):
        raise ConfigError("shoal try is for Shoal's own spiders: use scrapy parse")
    if from_archive:
        _check_archive_wanted(url, options)
    logs.configure(json_lines=settings.json_logs)
    made = target.create(loaded, settings.plugins, settings.rules.args)
    trying = _try(made, settings, url, handler, meta or [], from_archive=from_archive, cache=cache)
    with logs.silent(), _interruptible():
        tried, source = run(trying)
    if json:
        display.print_json(tried_json(tried, source))
    else:
        show(tried, source)
    raise typer.Exit(0 if tried.is_read else 1)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end a handler that never ends: the event loop would only note the signal."""
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _check_archive_wanted(url: str | None, options: dict[str, Any]) -> None:
    if url is None:
        raise ConfigError("--from-archive needs a URL")
    existing_stores({"results": options["results"]})


async def _try(
    spider: Spider,
    settings: Settings,
    url: str | None,
    handler: str | None,
    meta: list[str],
    *,
    from_archive: bool,
    cache: bool,
) -> tuple[Tried, str]:
    task = await task_for(spider, url, handler, meta_from(meta))
    if from_archive:
        return await try_from_archive(spider, settings, task.url, handler)
    if cache:
        return await try_from_cache(spider, settings, task, cache_folder())
    return await try_from_site(spider, settings, task)


def show(tried: Tried, source: str) -> None:
    """Print tables for people."""
    report = tried.report
    for hop in tried.hops:
        display.say(hop)
    display.say(headline(tried, source))
    if report.outcome.detail:
        display.say_lines(users_lines(report.outcome.detail))
    if why := ending(tried):
        display.say(why)
    elif report.outcome.reason:
        display.say(report.outcome.reason)
    _show_table("items", ("kind", "key", "item"), item_rows(report.items), len(report.items))
    rejected = rejected_rows(report.rejected)
    _show_table("rejected", ("kind", "why", "item"), rejected, len(report.rejected))
    links = link_rows(tried.links)
    _show_table("tasks", ("", "handler", "url", ""), links, len(tried.links))
    if tried.is_read:
        display.say(gave_line(tried))


def _show_table(
    title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], total: int
) -> None:
    if not rows:
        return
    display.say("")
    display.say(title)
    display.print_folded(columns, rows)
    if more := cut_line(len(rows), total, title):
        display.say(more)
