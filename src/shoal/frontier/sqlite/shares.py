"""The workers' shares of hosts: the table `shares`, as a step reads and changes it."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.statements import SQL


class Claim(NamedTuple):
    """A worker's claim on a host: the room that it takes, or 0 if it waits for some."""

    share: int
    until: float


class Shares:
    """The claims on all hosts of a step. Nothing is read for hosts that no worker shares."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._read: dict[int, dict[str, Claim]] = {}

    def of(self, host: HostSchedule) -> dict[str, Claim]:
        """The valid claims on a host, by worker."""
        if host.id not in self._read:
            self._read[host.id] = self._valid(host) if host.sharers else {}
        return self._read[host.id]

    def _valid(self, host: HostSchedule) -> dict[str, Claim]:
        rows = self._connection.execute(SQL["shares"], (host.id,)).fetchall()
        valid = {worker: Claim(*claim) for worker, *claim in rows if claim[1] > self._now}
        if len(valid) < len(rows):
            self._connection.execute(SQL["void_shares"], (host.id, self._now))
        host.sharers = len(valid)
        return valid

    def taken(self, host: HostSchedule) -> int:
        """How much of the host's room the claims take."""
        return sum(claim.share for claim in self.of(host).values())

    def put(self, host: HostSchedule, worker: str, claim: Claim | None) -> None:
        """Set the claim of a worker, or remove it."""
        claims = self.of(host)
        if claim is not None:
            claims[worker] = claim
            self._connection.execute(SQL["share"], (host.id, worker, *claim))
        elif claims.pop(worker, None) is not None:
            self._connection.execute(SQL["unshare"], (host.id, worker))
        host.sharers = len(claims)

    def next_void(self, host: HostSchedule) -> float:
        """When the first of the claims expires. The host must have some."""
        return min(claim.until for claim in self.of(host).values())
