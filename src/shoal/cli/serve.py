"""shoal serve: the coordinator."""

from __future__ import annotations

from typing import Any

from shoal import logs
from shoal.cli.options import settings_from, with_settings
from shoal.coordinator.serving import Coordinator
from shoal.crawl import stopped_by_signals
from shoal.eventloop import run
from shoal.frontier import frontier_at, must_be_there


@with_settings("frontier", "results", "allow_private", "json_logs")
def serve(options: dict[str, Any]) -> None:
    """Begin the runs of shoal.toml's schedules when they are due, and look after them.

    It never scrapes: `shoal worker`, without a target, does that, on any number of machines. Run
    several coordinators: one leads, another takes over within seconds of its death. shoal.toml is
    read again when it changes. SIGTERM and Ctrl-C stop it.

    Example of a schedule in shoal.toml:

      [[schedule]]
      name = "shop"
      target = "shop.py:Shop"
      cron = "0 3 * * *"
      timezone = "Europe/Berlin"
      window = "6h"

    then

      shoal serve --frontier redis://queue-host

      shoal worker --frontier redis://queue-host
    """
    settings = settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    run(_serve(settings.frontier, options))


async def _serve(address: str, options: dict[str, Any]) -> None:
    async with frontier_at(address) as frontier:
        await must_be_there(frontier)
        coordinator = Coordinator(frontier, options)
        with stopped_by_signals(coordinator):
            await coordinator.run()
