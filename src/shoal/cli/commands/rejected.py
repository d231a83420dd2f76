"""shoal rejected: items that did not pass validation, and why."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.known_crawl import must_be_known
from shoal.cli.options import (
    STORES,
    CrawlName,
    JsonFlag,
    existing_stores,
    show_help,
    with_settings,
)
from shoal.config import Rules
from shoal.core.records import RejectedItem
from shoal.errors import ConfigError
from shoal.frontier.admission import Admission
from shoal.insight.explain_rows import Row
from shoal.insight.json import rejected_json
from shoal.insight.moments import shown_moment
from shoal.results import results_at
from shoal.runtime.eventloop import run

app = typer.Typer(
    help="Items that did not pass validation.", callback=show_help, invoke_without_command=True
)

Url = Annotated[str, typer.Argument(metavar="URL", help="The address of the page.")]
Limit = Annotated[int, typer.Option(min=1, help="Show at most this many.")]


@app.command("list")
@with_settings(*STORES)
@examples("shoal rejected list shop", "shoal rejected list shop --json")
def list_(
    crawl: CrawlName, options: dict[str, Any], limit: Limit = 100, json: JsonFlag = False
) -> None:
    """List rejected items and why, the oldest first."""
    found = run(_read(options, crawl, limit + 1))
    shown = found[:limit]
    if json:
        display.print_json([rejected_json(item) for item in shown])
        return
    for item in shown:
        display.say(item.url)
        display.say(f"    {shown_moment(item.scraped_at)}  {item.kind}: {item.reason}")
    if not found:
        display.say("no rejected items")
    if len(found) > limit:
        display.say(f"the first {limit:,}; --limit shows more")


@app.command()
@with_settings(*STORES)
@examples("shoal rejected show shop https://shop.example/product/17")
def show(crawl: CrawlName, url: Url, options: dict[str, Any], json: JsonFlag = False) -> None:
    """Show the rejected items of one page."""
    found = run(_read(options, crawl, None, url))
    if not found:
        see = f"shoal rejected list {shlex.quote(crawl)}"
        raise ConfigError(f"no item of {url} was rejected (see: {see})")
    if json:
        display.print_json([rejected_json(item) for item in found])
        return
    for item in found:
        rows: list[Row] = [
            ("kind", item.kind),
            ("reason", item.reason),
            ("scraped", shown_moment(item.scraped_at)),
            ("item", item.data),
        ]
        display.out().print(display.facts(item.url, rows))


async def _read(
    options: dict[str, Any], crawl: str, limit: int | None, url: str | None = None
) -> list[RejectedItem]:
    """The first rejected items, or those of one page, in any spelling of its address."""
    is_wanted = None if url is None else Admission(Rules()).same_address(url)
    found: list[RejectedItem] = []
    stores = existing_stores({"results": options["results"]})
    async with results_at(stores.results) as results:
        is_known = False
        async for item in results.rejected(crawl):
            is_known = True
            if is_wanted is None or is_wanted(item.url):
                found.append(item)
            if len(found) == limit:
                break
        if not is_known:
            counts, note = await results.count(crawl), await results.note_of(crawl)
            await must_be_known(crawl, counts, note, options)
    return found
