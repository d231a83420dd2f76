"""`shoal crawl` with several spiders: finds them, runs them, and shows how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from shoal.cli import display
from shoal.cli.arguments import given
from shoal.cli.options import settings_from
from shoal.errors import ConfigError
from shoal.fleet import target
from shoal.fleet.several import EndedCrawl, PlannedCrawl, run_several, worst_of
from shoal.fleet.spider_files import FoundSpider, FoundSpiders, spiders_in
from shoal.insight.figures import duration
from shoal.insight.json import Json, summary_json
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.spider.arguments import arguments_of, no_argument
from shoal.spider.crawl_names import settings_with
from shoal.spider.own_settings import settings_of

COLUMNS = ("crawl", "state", "done", "dead", "left", "items", "time", "")


def are_several(targets: Sequence[str]) -> bool:
    """Whether these targets are several spiders."""
    is_other = any("://" in each for each in targets) or target.is_scrapy(targets)
    return len(targets) > 1 and not is_other


def crawl_several(
    targets: Sequence[str],
    args: list[str] | None,
    options: Mapping[str, Any],
    *,
    is_all: bool,
    at_once: int,
    fresh: bool,
    json: bool,
    output: Path | None,
) -> int:
    """Run several spiders and print how each of them ended. Returns the worst exit code."""
    if output is not None or options.get("name") is not None:
        raise ConfigError("--output and --name are for one spider, not for several")
    found = _all_in(targets) if is_all else _each_of(targets)
    planned = _planned(found.spiders, given(args), options)
    settings = settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    with display.progress(quiet=settings.json_logs and json) as watch:
        ended = run(run_several(planned, at_once=at_once, fresh=fresh, watch=watch))
    if json:
        display.print_json([_json(each) for each in ended])
    else:
        display.out().print(_table(ended))
    for fault in found.faults:
        display.say(f"shoal: {fault.told}", err=True)
    return worst_of([each.exit_code for each in ended] + [2] * bool(found.faults))


def _all_in(places: Sequence[str]) -> FoundSpiders:
    """All spiders of these places. Raises ConfigError if there are none."""
    found = FoundSpiders()
    for part in map(spiders_in, places):
        found.spiders += part.spiders
        found.faults += part.faults
    if not found.spiders:
        why = f": {found.faults[0].told}" if found.faults else ""
        raise ConfigError(f"no spiders in {' '.join(places)}{why}")
    return found


def _each_of(targets: Sequence[str]) -> FoundSpiders:
    return FoundSpiders([FoundSpider(each, target.load([each])) for each in targets])


def _planned(
    found: Sequence[FoundSpider], args: Mapping[str, Any], options: Mapping[str, Any]
) -> list[PlannedCrawl]:
    """The crawls of spiders, each with its settings and its arguments. Raises ConfigError."""
    known = {name for each in found for name in arguments_of(each.spider)}
    for name in args.keys() - known:
        raise ConfigError(f"these spiders have {no_argument(name, known)}")
    planned: dict[str, PlannedCrawl] = {}
    for each in found:
        own = {name: args[name] for name in arguments_of(each.spider) if name in args}
        settings = settings_with(each.spider, settings_from(options, settings_of(each.spider)), own)
        plan = PlannedCrawl(each.target, each.spider, settings)
        if (other := planned.setdefault(plan.crawl, plan)) is not plan:
            raise ConfigError(f"{other.target} and {plan.target} are both crawl '{plan.crawl}'")
    return list(planned.values())


def _table(ended: Sequence[EndedCrawl]) -> Table:
    return display.table(COLUMNS, map(_row, ended))


def _row(ended: EndedCrawl) -> tuple[str, ...]:
    if ended.summary is None:
        return (ended.crawl, "failed", *[""] * 5, f"{ended.target}: {ended.error}")
    stats = ended.summary.stats
    numbers = (stats.done, stats.dead, stats.remaining, sum(ended.summary.items.values()))
    shown = (f"{number:,}" for number in numbers)
    return (ended.crawl, str(stats.state), *shown, duration(ended.summary.seconds), "")


def _json(ended: EndedCrawl) -> Json:
    if ended.summary is not None:
        return summary_json(ended.summary) | {"target": ended.target}
    error = str(ended.error)
    failed = {"crawl": ended.crawl, "target": ended.target, "error": error}
    return failed | {"exit_code": ended.exit_code}
