"""shoal autoscale: runs as many workers as a crawl can use."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import ceil, inf
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from shoal.autoscale.autoscaler import Autoscaler, Resized, look_here
from shoal.autoscale.cost_meter import CostMeter, per_hour
from shoal.cli import display
from shoal.cli.arguments import ArgumentOptions, load_for_worker
from shoal.cli.commands.worker import AliveFile, StopFilePath, UntilFinished, stop_files
from shoal.cli.examples import examples
from shoal.cli.joining import Joining
from shoal.cli.options import FLEET, JsonFlag, refuse_missing_stores, with_settings
from shoal.core.addresses import masked
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError
from shoal.feeds.service import Feeds
from shoal.fetch.http.client import warn_of_proxies
from shoal.fleet import target
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import release_dead
from shoal.fleet.looking import Onlooker
from shoal.fleet.published import check_publishing
from shoal.fleet.stores import check_frontier, stores_at
from shoal.frontier import frontier_at
from shoal.insight.advise.scaler import Scaler
from shoal.insight.advise.scaling import Bounds, Staff
from shoal.runtime import logs, machine
from shoal.runtime.alive import signs_of_life
from shoal.runtime.eventloop import run
from shoal.runtime.services import Services
from shoal.runtime.signals import stopped_by_signals
from shoal.runtime.stop_file import StopFile

Targets = Annotated[list[str], typer.Argument(metavar="TARGET", help="As for `shoal crawl`.")]
Min = Annotated[int, typer.Option("--min", metavar="N", help="The fewest workers on this machine.")]
Max = Annotated[
    int | None,
    typer.Option(
        "--max",
        metavar="N",
        help="The most workers on this machine. [default: one per processor]",
        show_default=False,
    ),
]
Price = Annotated[
    str | None,
    typer.Option("--price", metavar="0.05/h", help="What one worker costs per hour."),
]
MaxCost = Annotated[
    str | None,
    typer.Option(
        "--max-cost", metavar="5/h", help="What all workers on this machine may cost per hour."
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="20",
        help="Stop, with exit code 1, when the workers on this machine have cost this much.",
    ),
]
DownAfter = Annotated[
    str,
    typer.Option(
        "--down-after",
        metavar="TIME",
        help="Stop workers after fewer would have been enough for this long.",
    ),
]
ZeroAfter = Annotated[
    str,
    typer.Option(
        "--zero-after",
        metavar="TIME",
        help="Stop the last worker after it had nothing to do for this long.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Start nothing; look once, and print what would be done.")
]

Tell = Callable[[Resized], None]

log = logging.getLogger("shoal")


@with_settings(*(name for name in FLEET if name != "workers"))
@examples(
    "shoal autoscale spider.py --frontier redis://queue-host --max 8",
    "shoal autoscale spider.py --max 20 --price 0.05/h --max-cost 0.8/h --until-finished",
    "shoal autoscale spider.py --dry-run",
)
def autoscale(
    targets: Targets,
    options: dict[str, Any],
    arg: ArgumentOptions = None,
    min_workers: Min = 0,
    max_workers: Max = None,
    price: Price = None,
    max_cost: MaxCost = None,
    budget: Budget = None,
    down_after: DownAfter = "2m",
    zero_after: ZeroAfter = "5m",
    until_finished: UntilFinished = False,
    alive_file: AliveFile = None,
    stop_file: StopFilePath = None,
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Run as many workers here as the crawl can use.

    It joins a crawl as `shoal worker` does, and says why it starts and stops workers. It never
    starts more than the hosts of the crawl can use, and none while results or the frontier are too
    slow. The number of workers rises at once, at most doubling every 15 s. It falls one by one,
    after fewer would have been enough for two minutes. Workers on other machines count too. After
    SIGTERM or Ctrl-C, all workers finish what they have in hand.
    """
    worker_per_h = _checked_price(price, max_cost, budget)
    bounds = Bounds(
        min=min_workers,
        max=max(ceil(machine.cores()), min_workers) if max_workers is None else max_workers,
        worker_per_h=worker_per_h,
        max_cost_per_h=_read("--max-cost", max_cost, per_hour) if max_cost is not None else None,
        down_after_s=_read("--down-after", down_after, parse_duration),
        zero_after_s=_read("--zero-after", zero_after, parse_duration),
    )
    order = _order(targets, arg, options, until_finished=until_finished, makes_stores=not dry_run)
    scaler = Scaler(bounds, is_one_machine=True)
    tell = _json_teller(order.crawl) if json else _log
    if dry_run:
        run(_look_once(order, scaler, tell))
        return
    cost_meter, beside = CostMeter(worker_per_h, budget), stop_files(stop_file)
    run(_scale(order, scaler, cost_meter, tell, beside, alive_file, quiet=json))


def _checked_price(price: str | None, max_cost: str | None, budget: float | None) -> float:
    if price is None and (max_cost is not None or budget is not None):
        raise ConfigError("--max-cost and --budget need the --price of a worker")
    if budget is not None and not 0 < budget < inf:
        raise ConfigError(f"--budget {budget:g}: must be a number greater than 0")
    return _read("--price", price, per_hour) if price is not None else 0.0


def _read(option: str, text: str, read: Callable[[str], float]) -> float:
    try:
        return read(text)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from None


def _order(
    targets: list[str],
    args: list[str] | None,
    options: dict[str, Any],
    *,
    until_finished: bool,
    makes_stores: bool,
) -> WorkerOrder:
    targets, spider, settings = load_for_worker(targets, args, options)
    if not makes_stores:
        refuse_missing_stores(settings, ["frontier"])
    logs.configure(json_lines=settings.json_logs)
    return WorkerOrder(
        settings.name or spider.name,
        targets,
        settings,
        until_finished=until_finished,
        brings_seeds=False,
        closes=True,
    )


async def _look_once(order: WorkerOrder, scaler: Scaler, tell: Tell) -> None:
    """Say what would be done if all existing workers were ours."""
    settings = order.settings
    async with frontier_at(settings.frontier, settings.state) as frontier:
        look = await look_here(frontier, order.crawl)
    alive = len(look.workers) if look is not None else 0
    decided = scaler.decide(look, Staff(alive=alive), time.monotonic())
    tell(Resized(was=alive, workers=decided.workers, why=decided.why))


async def _scale(
    order: WorkerOrder,
    scaler: Scaler,
    cost_meter: CostMeter,
    tell: Tell,
    beside: Sequence[StopFile],
    alive_file: Path | None,
    *,
    quiet: bool,
) -> None:
    if not target.is_scrapy(order.targets):  # Scrapy goes through proxies.
        warn_of_proxies(os.environ)
    async with stores_at(order.settings) as stores:
        await check_frontier(stores.frontier)
        await check_publishing(order.settings, order.crawl)
        await release_dead(stores.frontier, order.crawl)
        workers = Autoscaler(order, stores.frontier, scaler, cost_meter, tell=tell)
        onlooker = Onlooker(stores.frontier, order.crawl, order.settings)
        with display.progress(quiet=quiet) as watch, signs_of_life(alive_file):
            joining = Joining(onlooker, order.crawl, masked(order.settings.frontier), watch)
            feeds = Feeds(stores.frontier, crawl=order.crawl)
            services = Services(workers, feeds, joining, *beside)
            with stopped_by_signals(services):
                await services.run()


def _log(resized: Resized) -> None:
    log.info("%s", resized.line)


def _json_teller(crawl: str) -> Tell:
    def tell(resized: Resized) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        display.print_json_line({"at": at, "crawl": crawl, **msgspec.structs.asdict(resized)})

    return tell
