"""Runs commands that go on until they are told to stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal.cli.options import settings_from
from shoal.config import Settings
from shoal.errors import StorageBusy, unreachable
from shoal.fleet.published import check_publishing
from shoal.fleet.stores import check_frontier
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier, HasNotes
from shoal.runtime import logs
from shoal.runtime.alive import signs_of_life
from shoal.runtime.eventloop import run
from shoal.runtime.signals import Workers, stopped_by_signals


def run_service(
    options: dict[str, Any],
    make: Callable[[Frontier], Workers],
    alive_file: Path | None = None,
    *,
    publishes: bool = False,
) -> None:
    """Run a service on the frontier of these options until SIGTERM or Ctrl-C. If it publishes,
    check that first."""
    settings = settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    run(_serve(settings, make, alive_file, publishes=publishes))


async def _serve(
    settings: Settings,
    make: Callable[[Frontier], Workers],
    alive_file: Path | None,
    *,
    publishes: bool,
) -> None:
    async with frontier_at(settings.frontier, settings.state) as frontier:
        await _check_reachable(frontier)
        await check_frontier(frontier)
        if publishes:
            await check_publishing(settings)
        service = make(frontier)
        with stopped_by_signals(service), signs_of_life(alive_file):
            await service.run()


async def _check_reachable(frontier: HasNotes) -> None:
    """Raise ConfigError if the frontier does not answer, before any work begins."""
    try:
        await frontier.notes.leader()
    except StorageBusy as error:
        raise unreachable(error) from None
