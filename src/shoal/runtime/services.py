"""Runs several services in one process: they start and end together."""

from __future__ import annotations

import asyncio

from shoal.runtime.signals import HasProcesses, Workers


class Services:
    """Runs several services like one.

    When one ends, even by an error, the others are drained, not cut off. So a service that cannot
    work for a while must wait, not raise.
    """

    def __init__(self, *services: Workers) -> None:
        self._services = services

    async def run(self) -> None:
        """Run until all services have ended. Raises the error of the first one, in their order."""
        running = (self._run(service) for service in self._services)
        for error in await asyncio.gather(*running, return_exceptions=True):
            if error is not None:
                raise error

    def drain(self) -> None:
        """Stop all services gently."""
        for service in self._services:
            service.drain()

    def kill(self) -> None:
        """Kill the processes of the services that have any."""
        for service in self._services:
            if isinstance(service, HasProcesses):
                service.kill()

    async def _run(self, service: Workers) -> None:
        try:
            await service.run()
        finally:
            self.drain()
