"""`python -m benchmarks.sharing`: measures how evenly workers share one slow host.

The host takes 50 ms for an answer and may have 16 requests in flight, the default, so that it is
the limit, however many workers there are. Its own log shows how the pages were divided, how many
requests were in flight at once, and how long it takes until shares are even again when a worker
joins, leaves or is killed. Then the same spider crawls the shop in one and in two Scrapy processes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
from rich.table import Table

from benchmarks.crawls import Runs
from benchmarks.crew import LEASE_S, ROOM, Divided, Handover, divided, handover
from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.report import keep, wide_console
from benchmarks.scrapy_crawls import Contestant, crawl
from benchmarks.site import make_site, served
from benchmarks.slow_server import SlowHosts, slow_hosts
from benchmarks.tables import figures, part_range, parts_of, ratio, spread

DELAY_S = 0.05
WORKERS = (1, 2, 4, 8)
HANDOVER_S = 30.0
"""How long the pages of a handover last. All its events take less."""
SCRAPY_ROOM = 8
"""Scrapy's default per domain. On Shoal, this limit is for all processes together."""
ONE_PROCESS, TWO_PROCESSES = "one Scrapy process", "two"
SCRAPY = {
    ONE_PROCESS: Contestant("shoal", room=SCRAPY_ROOM),
    TWO_PROCESSES: Contestant("shoal", processes=2, room=SCRAPY_ROOM),
}

Stores = dict[str, RedisServer | None]


class Figures(msgspec.Struct):
    """What was measured, round by round."""

    divided: dict[str, list[Divided]] = {}
    handovers: dict[str, list[Handover]] = {}
    scrapy: Runs = {}


def on_slow_host(hosts: SlowHosts, stores: Stores, pages: int, found: Figures) -> Iterator[str]:
    """Measure one round of Shoal's workers. Yields lines that show the progress."""
    enough = int(HANDOVER_S * ROOM / DELAY_S)
    for store, server in stores.items():
        for workers in WORKERS:
            name = f"{store}, {workers}"
            run = divided(hosts, workers, pages, server)
            found.divided.setdefault(name, []).append(run)
            yield f"{name}: {run.pages_per_s:,.0f} pages/s"
        found.handovers.setdefault(store, []).append(handover(hosts, enough, server))
        yield f"{store}: {found.handovers[store][-1]}"


def on_shop(base: str, server: RedisServer, found: Figures) -> Iterator[str]:
    """Measure one round of Scrapy processes. Yields lines that show the progress."""
    for name, contestant in SCRAPY.items():
        run = crawl(contestant, base, server)
        found.scrapy.setdefault(name, []).append(run)
        yield f"{name}: {run.pages_per_s:,.0f} pages/s, by each {run.by_each}"


def division_table(found: dict[str, list[Divided]]) -> Table:
    """A table of median speeds, and of the worst parts and requests in flight of all rounds."""
    table = Table(
        *("store, workers", "pages/s", "of what the room allows", "parts", "most at once"),
        "round trips per 50 pages",
        title=f"one host, {DELAY_S * 1000:.0f} ms, {ROOM} in flight"
        f" (aims: parts within 0.8 to 1.2, at most {ROOM} at once)",
        caption="a part of 1 is an even one: the smallest and the largest of all rounds",
    )
    for name, own in found.items():
        pages_per_s = statistics.median(run.pages_per_s for run in own)
        trips = [run.trips_per_50 for run in own if run.trips_per_50 is not None]
        table.add_row(
            name,
            f"{pages_per_s:,.0f}",
            f"{pages_per_s * DELAY_S / ROOM:.2f}",
            part_range(chain(*(run.parts for run in own))),
            f"{max(run.most_at_once for run in own)}",
            f"{statistics.median(trips):.2f}" if trips else "",
        )
    return table


def handover_table(found: dict[str, list[Handover]]) -> Table:
    """A table of medians and extremes, in seconds."""
    table = Table(
        *("store", "joined", "left", "killed", "most at once"),
        title=f"seconds until shares are even again (aims: 2; killed: its lease, {LEASE_S:g})",
        caption="a fourth worker has its part; the other three, then two, have all the room",
    )
    for store, own in found.items():
        table.add_row(
            store,
            _seconds([run.joined_s for run in own]),
            _seconds([run.left_s for run in own]),
            _seconds([run.killed_s for run in own]),
            f"{max(run.most_at_once for run in own)}",
        )
    return table


def _seconds(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    return spread(measured) if len(measured) == len(values) else "never"


def scrapy_table(found: Runs) -> Table:
    """A table of medians, and of the worst parts of all rounds."""
    title = f"Scrapy on Shoal, {SCRAPY_ROOM} in flight in all (aims: 1.8 times, parts 0.89 to 1.11)"
    table = Table("", "pages/s", "CPU s per 1,000 pages", "RSS MB", "times one", "parts")
    table.title = title
    for name, own in found.items():
        times = ratio(own, found[ONE_PROCESS])
        table.add_row(name, *figures(own), times, part_range(chain(*map(parts_of, own))))
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing", description=__doc__)
    parser.add_argument("--pages", type=int, default=3_000, help="of the slow host")
    parser.add_argument("--shop-pages", type=int, default=3_000, help="of Scrapy's shop")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    console = wide_console()
    found = Figures()
    with (
        slow_hosts(1, DELAY_S) as hosts,
        served(make_site(args.shop_pages)) as base,
        redis_server(durable=True) as server,
    ):
        stores: Stores = {"SQLite": None, "Redis": server}
        for number in range(1, args.rounds + 1):
            lines = chain(
                on_slow_host(hosts, stores, args.pages, found), on_shop(base, server, found)
            )
            for line in lines:
                console.print(f"round {number}: {line}")
    tables = (
        division_table(found.divided),
        handover_table(found.handovers),
        scrapy_table(found.scrapy),
    )
    console.print(*tables)
    console.print(f"raw figures: {keep('sharing', msgspec.to_builtins(found), *tables)}")


if __name__ == "__main__":
    main()
