"""The Redis frontier as the contract suite takes it: under a clock of the test's own."""

from __future__ import annotations

from shoal.frontier.port import Frontier
from shoal.frontier.redis import RedisFrontier
from support.frontiers import Backend


class RedisBackend(Backend):
    """A frontier on an empty server or cluster."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__()

    def _open(self) -> Frontier:
        return RedisFrontier(self.address, clock=self.clock)
