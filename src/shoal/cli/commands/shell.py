"""shoal shell: opens a Python prompt with a page."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.arguments import ArgumentOptions, load_spider
from shoal.cli.examples import examples
from shoal.cli.options import settings_from, with_settings
from shoal.cli.prompt import Prompt
from shoal.config import Settings
from shoal.fleet import target
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.workbench.shown_page import fetched_page, page_of_file

Place = Annotated[
    str | None, typer.Argument(metavar="URL|FILE", help="A page, or a saved one: saved.html.")
]
SpiderName = Annotated[
    str | None,
    typer.Option("--spider", metavar="TARGET", help="Fetch with the settings of this spider."),
]
Code = Annotated[str | None, typer.Option("-c", metavar="CODE", help="Run this code and exit.")]


@with_settings("allow_private", "robots", "proxies", "accounts", "user_agent", "timeout_s")
@examples(
    "shoal shell https://shop.example/product/17",
    "shoal shell saved.html -c 'page.css(\"h1::text\").get()'",
    "shoal shell https://shop.example/ --spider shop.py",
)
def shell(
    options: dict[str, Any],
    place: Place = None,
    spider: SpiderName = None,
    arg: ArgumentOptions = None,
    code: Code = None,
) -> None:
    """Open a Python prompt with a page.

    It has `page`; `fetch(url)`, which gets another page; `view()`, which opens it in a browser; and
    `spider`. Pages are fetched as in a crawl, but no handler runs unless you call it.

    With -c, or if stdin is not a terminal, code is run and its values are printed. Exit codes of
    -c: 0 it ran; 1 it raised.
    """
    if spider is not None:
        _, loaded, settings = load_spider([spider], arg, options)
    else:
        loaded, settings = Spider, settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    fetch = partial(_fetch, loaded, settings)
    made = target.create(loaded, settings.plugins, settings.rules.args)
    prompt = Prompt(_page_at(place, fetch), made, fetch)
    if code is not None:
        raise typer.Exit(prompt.run(code))
    prompt.interact()


def _fetch(spider: type[Spider], settings: Settings, url: str) -> Page:
    with logs.silent():
        return run(fetched_page(spider, settings, url))


def _page_at(place: str | None, fetch: Any) -> Page | None:
    if place is None:
        return None
    return fetch(place) if "://" in place else page_of_file(Path(place))
