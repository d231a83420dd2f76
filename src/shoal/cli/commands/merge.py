"""shoal merge: merges items that share a natural key."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, existing_stores, with_settings
from shoal.errors import ConfigError
from shoal.insight.figures import counted
from shoal.results import results_at
from shoal.results.merge import Merged, MergePlan, Rule
from shoal.results.merge import merge as merge_items
from shoal.runtime.eventloop import run

Crawls = Annotated[list[str], typer.Argument(metavar="CRAWL", help="The crawls to merge.")]
Into = Annotated[str, typer.Option("--into", metavar="NAME", help="The name of the result.")]
By = Annotated[
    str,
    typer.Option("--by", metavar="FIELD[,FIELD]", help="The fields that make up the natural key."),
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only items of this kind.")]
RuleName = Annotated[Rule, typer.Option("--rule", help="Which values win.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over: forget what was merged before.")]


@with_settings("results")
@examples(
    "shoal merge shop-a shop-b --into products --by ean",
    "shoal merge a b --into all --by brand,sku --rule first-non-empty",
)
def merge(
    crawls: Crawls,
    into: Into,
    by: By,
    options: dict[str, Any],
    kind: Kind = None,
    rule: RuleName = Rule.NEWEST,
    fresh: Fresh = False,
    json: JsonFlag = False,
) -> None:
    """Merge items that share a natural key.

    Items may come from several hosts or crawls. The result is stored beside its sources, under a
    name of its own; export it like a crawl. Each item's _sources lists the items that it was made
    of, and which field came from which. Run the command again to update the result; --fresh also
    drops items that no longer have a source.

    Rules: `newest` takes the newest scrape as a whole. `first-non-empty` takes the first value of
    each field that is not empty, in the order of the crawls, with the newest first in each crawl.
    """
    fields = _fields(by)
    address = existing_stores(options).results
    done = run(_merge(address, MergePlan(crawls, into, fields, kind, rule, fresh)))
    if json:
        display.print_json(done)
    else:
        _show(done, into, fields)


def _fields(by: str) -> list[str]:
    fields = [name.strip() for name in by.split(",")]
    if not all(fields):
        raise ConfigError(f"--by {by!r}: a field has no name (write FIELD or FIELD,FIELD)")
    return fields


async def _merge(address: str, plan: MergePlan) -> Merged:
    async with results_at(address) as results:
        with bars("items") as watch:
            return await merge_items(results, plan, watch)


def _show(done: Merged, into: str, fields: list[str]) -> None:
    display.say(f"{counted(done.items, 'item')} in '{into}', made of {done.sources:,}")
    if done.left_out:
        left_out = counted(done.left_out, "item")
        display.say(f"left out: {left_out} without a value in {' or '.join(fields)}")
