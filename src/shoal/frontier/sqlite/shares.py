"""What workers have of the room of hosts: the table `shares`, as a step sees and changes it."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.statements import SQL


class Claim(NamedTuple):
    """A worker's part in a host: it takes so much of its room, or waits for some with 0."""

    share: int
    until: float


class Shares:
    """Those of all hosts of a step. Hosts that nobody shares are not looked for."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._read: dict[int, dict[str, Claim]] = {}

    def of(self, host: HostSchedule) -> dict[str, Claim]:
        """The claims on a host that are not void, by worker."""
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
        """How much of the host's room they take."""
        return sum(claim.share for claim in self.of(host).values())

    def put(self, host: HostSchedule, worker: str, claim: Claim | None) -> None:
        """From now on a worker has this claim, or none."""
        claims = self.of(host)
        if claim is not None:
            claims[worker] = claim
            self._connection.execute(SQL["share"], (host.id, worker, *claim))
        elif claims.pop(worker, None) is not None:
            self._connection.execute(SQL["unshare"], (host.id, worker))
        host.sharers = len(claims)

    def next_void(self, host: HostSchedule) -> float:
        """When the first of them is void. Ask for it only where there are some."""
        return min(claim.until for claim in self.of(host).values())
