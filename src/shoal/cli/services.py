"""Commands that run until they are told to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cli.options import settings_from
from shoal.errors import StorageBusy, unreachable
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier, HasNotes
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.signals import Workers, stopped_by_signals


def run_service(options: dict[str, Any], make: Callable[[Frontier], Workers]) -> None:
    """Run what is made for the frontier of these options, until SIGTERM or Ctrl-C."""
    settings = settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    run(_serve(settings.frontier, make))


async def _serve(address: str, make: Callable[[Frontier], Workers]) -> None:
    async with frontier_at(address) as frontier:
        await _must_be_there(frontier)
        service = make(frontier)
        with stopped_by_signals(service):
            await service.run()


async def _must_be_there(frontier: HasNotes) -> None:
    """Look whether it answers, before work begins for good. Raises ConfigError."""
    try:
        await frontier.notes.leader()
    except StorageBusy as error:
        raise unreachable(error) from None
