"""shoal serve: the coordinator."""

from __future__ import annotations

from typing import Any

from shoal.cli.options import with_settings
from shoal.cli.services import run_service
from shoal.coordinator.coordinator import Coordinator


@with_settings("frontier", "results", "json_logs")
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
    run_service(options, lambda frontier: Coordinator(frontier, options))
