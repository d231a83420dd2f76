"""Several services in one process: they begin together, and end together."""

from __future__ import annotations

import asyncio

from shoal.runtime.signals import HasProcesses, Workers


class Services:
    """Services as one. When one ends, be it by an error, the others are drained, not cut off: so
    whatever cannot go on by itself for a while must not raise, but wait."""

    def __init__(self, *services: Workers) -> None:
        self._services = services

    async def run(self) -> None:
        """Run until all have ended. Raises what the first of them raised, in their order."""
        running = (self._run(service) for service in self._services)
        for error in await asyncio.gather(*running, return_exceptions=True):
            if error is not None:
                raise error

    def drain(self) -> None:
        """Let all end in good order."""
        for service in self._services:
            service.drain()

    def kill(self) -> None:
        """End at once the processes of those that have any."""
        for service in self._services:
            if isinstance(service, HasProcesses):
                service.kill()

    async def _run(self, service: Workers) -> None:
        try:
            await service.run()
        finally:
            self.drain()
