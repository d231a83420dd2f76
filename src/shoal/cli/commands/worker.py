"""shoal worker: adds a worker to a crawl that somebody else started."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.arguments import ArgumentOptions, load_for_worker
from shoal.cli.examples import examples
from shoal.cli.joining import Joining, leaving_line
from shoal.cli.options import FLEET, with_settings
from shoal.cli.services import run_service
from shoal.config import Settings
from shoal.coordinator.scheduled import ScheduledWorkers
from shoal.core.addresses import masked
from shoal.errors import ConfigError, ShoalError
from shoal.feeds.service import Feeds
from shoal.fetch.http.client import warn_of_proxies
from shoal.fleet import target
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import release_dead
from shoal.fleet.looking import Onlooker
from shoal.fleet.published import check_publishing
from shoal.fleet.spider_maker import SpiderMaker
from shoal.fleet.stores import check_frontier, stores_at
from shoal.fleet.workers import needs_processes, workers_for
from shoal.runtime import logs
from shoal.runtime.alive import DEAD_AFTER_S, signs_of_life, silent_s
from shoal.runtime.eventloop import run
from shoal.runtime.services import Services
from shoal.runtime.signals import stopped_by_signals
from shoal.runtime.stop_file import StopFile
from shoal.runtime.watchdog import watched
from shoal.spider.spider import Spider

log = logging.getLogger("shoal")

Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET", help="As for `shoal crawl`. [default: all scheduled runs]"),
]
UntilFinished = Annotated[
    bool, typer.Option("--until-finished", help="Exit when the crawl is finished.")
]
AliveFile = Annotated[
    Path | None,
    typer.Option(
        "--alive-file",
        envvar="SHOAL_ALIVE_FILE",
        metavar="FILE",
        help="A file that shows that the worker is alive, for --alive.",
        show_envvar=False,
    ),
]
StopFilePath = Annotated[
    Path | None,
    typer.Option(
        "--stop-file",
        envvar="SHOAL_STOP_FILE",
        metavar="FILE",
        help="Stop, as after SIGTERM, when this file appears: for machines that are taken away.",
        show_envvar=False,
    ),
]
Alive = Annotated[
    bool,
    typer.Option(
        "--alive",
        help="Start nothing; say whether the worker with the same --alive-file is alive."
        f" Exit code 1 if it was silent for more than {DEAD_AFTER_S:g} s.",
    ),
]


@with_settings(*FLEET)
@examples(
    "shoal worker spider.py --frontier sqlite:///shoal.db --until-finished",
    "shoal worker --frontier redis://queue-host --workers 2",
    "shoal worker --alive --alive-file /run/shoal/alive",
)
def worker(
    options: dict[str, Any],
    targets: Targets = None,
    arg: ArgumentOptions = None,
    until_finished: UntilFinished = False,
    alive_file: AliveFile = None,
    stop_file: StopFilePath = None,
    alive: Alive = False,
) -> None:
    """Add a worker to a crawl, or to all scheduled runs.

    The crawl is on a shared frontier. The worker waits for work, and runs until SIGTERM or Ctrl-C;
    then it finishes what it has in hand. The rules of the crawl (rate, retries, robots.txt, ...)
    and the arguments of its spider (-a) are those of whoever started it. If shoal.toml has feeds of
    this crawl, they run here too.

    Without a TARGET, it works on every run that `shoal serve` begins, with --workers processes for
    each. What a schedule runs is read from shoal.toml in this folder, where the spiders must be
    too. Schedules that are not in it are left to other workers.
    """
    if alive:
        _show_whether_alive(alive_file)
        return
    if not targets:
        _refuse_what_needs_a_target(options, until_finished=until_finished)
        run_service(
            options,
            lambda frontier: Services(ScheduledWorkers(frontier, options), *stop_files(stop_file)),
            alive_file,
            publishes=True,
        )
        return
    targets, spider, settings = load_for_worker(targets, arg, options)
    logs.configure(json_lines=settings.json_logs)
    if not target.is_scrapy(targets):  # Scrapy goes through proxies.
        warn_of_proxies(os.environ)
    stopping = stop_files(stop_file)
    run(_work(spider, targets, settings, alive_file, stopping, until_finished=until_finished))


def stop_files(file: Path | None) -> list[StopFile]:
    """A service that waits for the file, if one is given."""
    return [StopFile(file)] if file is not None else []


def _show_whether_alive(file: Path | None) -> None:
    if file is None:
        raise ConfigError("--alive needs the --alive-file of the worker, or SHOAL_ALIVE_FILE")
    ago_s = silent_s(file)
    if ago_s is None:
        raise ShoalError(f"no sign of life in {file}")
    if ago_s > DEAD_AFTER_S:
        raise ShoalError(f"no sign of life for {ago_s:.0f} s")
    display.say(f"alive {ago_s:.0f} s ago")


def _refuse_what_needs_a_target(options: dict[str, Any], *, until_finished: bool) -> None:
    if options["name"] is not None or until_finished:
        option = "--until-finished" if until_finished else "--name"
        raise ConfigError(f"{option} needs a TARGET: without one, all scheduled runs are served")


async def _work(
    spider: type[Spider],
    targets: list[str],
    settings: Settings,
    alive_file: Path | None,
    stopping: Sequence[StopFile],
    *,
    until_finished: bool,
) -> None:
    order = WorkerOrder(
        settings.name or spider.name,
        targets if needs_processes(targets, settings) else [],
        settings,
        until_finished=until_finished,
        brings_seeds=False,
        closes=True,
    )
    async with stores_at(settings) as stores:
        await check_frontier(stores.frontier)
        await check_publishing(settings, order.crawl)
        await release_dead(stores.frontier, order.crawl)
        workers = workers_for(
            order,
            stores,
            lambda: SpiderMaker(spider, settings.plugins, settings.rules.args),
            watch=watched,
        )
        began = time.monotonic()
        onlooker = Onlooker(stores.frontier, order.crawl, settings)
        with (
            display.progress(quiet=settings.json_logs) as watch,
            signs_of_life(alive_file),
        ):
            joining = Joining(onlooker, order.crawl, masked(settings.frontier), watch)
            feeds = Feeds(stores.frontier, crawl=order.crawl)
            services = Services(workers, feeds, joining, *stopping)
            with stopped_by_signals(services):
                await services.run()
    log.info("%s", leaving_line(workers.did, order.crawl, time.monotonic() - began))
