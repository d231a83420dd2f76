"""`make bench`: measures Shoal, its peers and a bare loop on the same pages of a local nginx.

Runs are interleaved, and ratios are between runs of the same round, because times differ from
machine to machine and from minute to minute. Raw figures and a chart are kept in benchmarks/out.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator

import msgspec
from rich.table import Table

from benchmarks import contest, one_site, procstat
from benchmarks.contest import (
    BARE,
    EMBEDDED,
    FLEET,
    MANY,
    SCRAPY_REDIS,
    TWO,
    Arena,
    Contestants,
)
from benchmarks.crawls import Runs
from benchmarks.publish import Contest, chart_of
from benchmarks.report import keep, wide_console
from benchmarks.tables import crawl_table, load_table, ratio

QUICK_PAGES = 10_000
PAGES = 20_000
SMALL_PAGES = 3_000
"""Pages of the smaller shop, for slow contestants."""
ROUNDS, QUICK_ROUNDS = 5, 2


def main() -> None:
    """Measure, print, keep."""
    args = _arguments()
    console = wide_console()
    with contest.opened(args.pages, args.small_pages) as arena:
        who = contestants(arena, args)
        runs = contest.in_rounds(who, args.rounds, console)
    for table in tables_of(runs):
        console.print(table)
    for line in headlines(runs):
        console.print(line)
    measured = Contest(
        command=command_of(args),
        date=time.strftime("%Y-%m-%d"),
        machine=f"{procstat.cores()} cores, Python {platform.python_version()}",
        pages=args.pages,
        small_pages=args.small_pages,
        runs=runs,
    )
    kept = keep("bench", msgspec.to_builtins(measured))
    chart = kept.with_suffix(".svg")
    chart.write_text(chart_of(measured))
    console.print(f"raw figures: {kept}\nchart: {chart}")


def contestants(arena: Arena, args: argparse.Namespace) -> Contestants:
    """The contestants that the arguments select, all by default. The yardsticks come first."""
    if args.quick:
        return contest.headline(arena)
    shared = one_site.contestants(arena)
    if args.one_site:
        return contest.yardsticks(arena) | shared
    return contest.headline(arena) | contest.ours(arena) | shared | contest.theirs(arena)


def command_of(args: argparse.Namespace) -> str:
    """The command that repeats this run."""
    command = "python -m benchmarks" + (" --quick" if args.quick else "")
    command += " --one-site" if args.one_site else ""
    usual = {"pages": QUICK_PAGES if args.quick else PAGES, "small_pages": SMALL_PAGES}
    usual["rounds"] = QUICK_ROUNDS if args.quick else ROUNDS
    changed = {name: getattr(args, name) for name in usual if getattr(args, name) != usual[name]}
    if not changed and not args.one_site:
        return "make bench-quick" if args.quick else "make bench"
    options = (f" --{name.replace('_', '-')} {value}" for name, value in changed.items())
    return command + "".join(options)


def tables_of(runs: Runs) -> Iterator[Table]:
    """Tables of crawls of one host, of many hosts, of a shared host, and of the load on Redis."""
    whole = {name: own for name, own in runs.items() if not one_site.is_shared(name)}
    one_host = {name: own for name, own in whole.items() if not name.endswith(MANY)}
    many_hosts = {name: own for name, own in whole.items() if name.endswith(MANY)}
    yardsticks = {f"times {SCRAPY_REDIS}": SCRAPY_REDIS, f"of the {BARE}": BARE}
    measured = {head: name for head, name in yardsticks.items() if name in runs}
    yield crawl_table(one_host, measured, "whole crawls")
    if many_hosts:
        title = f"as many pages on {contest.HOSTS} hosts"
        yield crawl_table(many_hosts, {f"of the {BARE}": f"{BARE}{MANY}"}, title)
    if len(whole) < len(runs):
        shared = Table(
            *one_site.HEADS, title=f"one site, {one_site.ROOM} requests in flight in all"
        )
        for row in one_site.rows(runs):
            shared.add_row(*row)
        yield shared
    yield load_table(runs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes: the headline ratios")
    parser.add_argument("--one-site", action="store_true", help="one site and many workers alone")
    parser.add_argument("--pages", type=int, help="of the shop; default 20,000, quick 10,000")
    parser.add_argument("--small-pages", type=int, help="of the peers' shop; default 3,000")
    parser.add_argument("--rounds", type=int, help="default 5, quick 2")
    args = parser.parse_args()
    args.pages = args.pages or (QUICK_PAGES if args.quick else PAGES)
    args.small_pages = args.small_pages or SMALL_PAGES
    args.rounds = args.rounds or (QUICK_ROUNDS if args.quick else ROUNDS)
    return args


def headlines(runs: Runs) -> list[str]:
    """A line for each aim, with the ratio that was measured."""
    fleet, embedded = runs[FLEET], runs[EMBEDDED]
    lines = [
        f"{FLEET}: {ratio(fleet, runs[BARE])} of the {BARE} (aim: 0.8)",
        f"{EMBEDDED}: {ratio(embedded, runs[BARE])} of the {BARE} (aim: 0.8)",
    ]
    if peer := runs.get(SCRAPY_REDIS):
        lines.append(f"{FLEET}: {ratio(fleet, peer)} times {SCRAPY_REDIS} (aim: 16)")
    if plain := runs.get(f"{SCRAPY_REDIS}, defaults"):
        lines.append(f"{FLEET}: {ratio(fleet, plain)} times {SCRAPY_REDIS} with its defaults")
    if two := runs.get(f"{FLEET}{TWO}"):
        lines.append(f"{FLEET}{TWO}: {ratio(two, fleet)} times one (aim: 1.5)")
        lines.append(f"  {one_site.room_for(fleet)}")
    return lines + one_site.headlines(runs)


if __name__ == "__main__":
    main()
