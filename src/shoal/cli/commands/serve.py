"""shoal serve: the coordinator."""

from __future__ import annotations

from typing import Any

from shoal.cli.examples import examples
from shoal.cli.options import with_settings
from shoal.cli.services import run_service
from shoal.coordinator.coordinator import Coordinator


@with_settings("frontier", "results", "json_logs")
@examples("shoal serve", "shoal serve --frontier redis://queue-host")
def serve(options: dict[str, Any]) -> None:
    """Run a coordinator for schedules.

    It begins the runs of shoal.toml's schedules when they are due, and looks after them. It never
    scrapes: `shoal worker`, without a target, does that, on any number of machines. You may run
    several coordinators: one leads, and if it dies another takes over within seconds. shoal.toml is
    read again when it changes. SIGTERM and Ctrl-C stop it.

    A schedule in shoal.toml:

    \b
      [[schedule]]
      name = "shop"
      target = "shop.py:Shop"
      cron = "0 3 * * *"
      timezone = "Europe/Berlin"
      window = "6h"
    """
    run_service(options, lambda frontier: Coordinator(frontier, options))
