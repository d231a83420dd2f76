"""A worker's shares of hosts: what it may send to them, and what waits until it may. Pure.

While a question is open, the frontier may already have given others what this worker does not use.
Until it is answered, no more may be in flight at a host than the question said. And a share that
was not asked about for long, because the worker was stalled or the frontier away, may belong to
others by now: so each request has a time until which it may be sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf

from shoal.core.sharing import AHEAD_PER_SHARE
from shoal.frontier.values import Holding, Lease

Granted = tuple[Lease, float]
"""A lease that waits, and the time at which it was granted: see `Grant.decided`."""

Ready = tuple[Lease, float]
"""A lease whose visit may begin, and the time until which its request may be sent."""


class _Host:
    """What this worker has of one host."""

    __slots__ = ("in_flight", "is_next", "may_have", "refusals", "said", "share", "unsent")

    def __init__(self) -> None:
        self.share = 0  # As the last answer said.
        self.may_have = 0  # The most that may be in flight.
        self.in_flight = 0
        self.said = 0  # What was in flight, as the last question said.
        self.unsent: deque[Granted] = deque()
        self.refusals: set[str] = set()  # Tokens of refusals that the frontier has not heard of.
        self.is_next = False  # Whether it is among the hosts that wait for a slot.

    @property
    def may_send(self) -> bool:
        return self.in_flight < self.may_have and bool(self.unsent)


class Shares:
    """The shares of a worker, and its shared leases until their requests are answered."""

    def __init__(self) -> None:
        self.unsent = 0
        """Leases whose requests have not been sent, over all hosts."""
        self._hosts: dict[str, _Host] = {}
        self._sent: dict[str, _Host] = {}  # By token: leases whose request is at a host.
        self._next: deque[_Host] = deque()  # Hosts to send to, in turn, once there is a slot.
        self._send_by = 0.0

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def unfilled(self) -> int:
        """How many more requests could be in flight at these hosts if there were leases for
        them."""
        return sum(
            max(host.may_have - host.in_flight, 0)
            for host in self._hosts.values()
            if not host.unsent
        )

    @property
    def left(self) -> int:
        """How many more leases the frontier would grant for these hosts."""
        return sum(
            max(host.share * AHEAD_PER_SHARE - len(host.unsent), 0) for host in self._hosts.values()
        )

    # Questions and answers

    def say(self) -> dict[str, Holding]:
        """Return what a question tells the frontier of our shares."""
        for host in self._hosts.values():
            host.said = host.in_flight
            host.may_have = min(host.may_have, host.in_flight)
        return {
            name: Holding(host.in_flight, len(host.unsent)) for name, host in self._hosts.items()
        }

    def told(self, shares: Mapping[str, int], send_by: float) -> list[Lease]:
        """From now on our shares are exactly these. Whatever is not sent by `send_by` needs another
        answer.

        Returns the leases to give back. A host is forgotten when the frontier knows that nothing of
        ours is there.
        """
        self._send_by = send_by
        for name in shares.keys() - self._hosts.keys():
            self._hosts[name] = _Host()
        given_back: list[Lease] = []
        for name, host in [*self._hosts.items()]:
            host.share = shares.get(name, 0)
            host.may_have = 0 if host.refusals else host.share
            if host.share:
                self._line_up(host)
                continue
            given_back += self._take_back(host)
            if not host.said:
                del self._hosts[name]
        return given_back

    def leave(self) -> dict[str, Holding]:
        """Give up all shares: nothing is in flight any more, and nothing will be. Returns what to
        tell the frontier."""
        given_up = {name: Holding(0, 0) for name in self._hosts}
        self._hosts.clear()
        return given_up

    # Leases

    def hold(self, granted: Granted) -> None:
        """Take a granted lease. It waits at least until `told` says how much may be in flight."""
        name = granted[0].task.site
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
        host.unsent.append(granted)
        self.unsent += 1

    def send_next(self) -> Ready | None:
        """Return the lease to visit in a free slot. Hosts take turns."""
        while self._next:
            host = self._next.popleft()
            host.is_next = False
            if host.may_send:
                lease, _ = host.unsent.popleft()
                self.unsent -= 1
                host.in_flight += 1
                self._sent[lease.token] = host
                self._line_up(host)
                return lease, self._send_by
        return None

    def answered(self, lease: Lease) -> None:
        """The lease's request is not at the host any more. May be called more than once."""
        host = self._sent.pop(lease.token, None)
        if host is not None:
            host.in_flight -= 1
            self._line_up(host)

    def refused(self, lease: Lease) -> None:
        """The host has asked for less. It gets nothing until the frontier has heard of that and has
        told a new share."""
        host = self._hosts.get(lease.task.site)
        if host is not None:
            host.may_have = 0
            host.refusals.add(lease.token)

    def heard(self, lease: Lease) -> None:
        """The frontier has heard that the host refused this lease."""
        host = self._hosts.get(lease.task.site)
        if host is not None:
            host.refusals.discard(lease.token)

    def give_back(self, until: float) -> list[Lease]:
        """Return the leases to give back: those granted until `until` and not sent yet."""
        return [lease for host in self._hosts.values() for lease in self._take_back(host, until)]

    def _line_up(self, host: _Host) -> None:
        if not host.is_next and host.may_send:
            host.is_next = True
            self._next.append(host)

    def _take_back(self, host: _Host, until: float = inf) -> list[Lease]:
        given_back = []
        while host.unsent and host.unsent[0][1] <= until:
            given_back.append(host.unsent.popleft()[0])
        self.unsent -= len(given_back)
        return given_back
