"""A worker's shares of hosts: what may be sent to them, and what waits until it may. Pure.

While a question is open, the frontier may already have given others what we do not use. So until
it is answered no more may be in flight at a host than the question said. And a share that we have
not asked about for long, because we stood still or the frontier is away, may be others' by now: so
each request has a moment until which it may be sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf

from shoal.core.sharing import AHEAD_PER_SHARE
from shoal.frontier.values import Holding, Lease

Granted = tuple[Lease, float]
"""A lease that waits, and when it was granted: see `Grant.decided`."""

Ready = tuple[Lease, float]
"""A lease whose visit may begin, and until when its request may be sent."""


class _Host:
    """What we have of one host."""

    __slots__ = ("in_flight", "is_next", "may_have", "refusals", "said", "share", "unsent")

    def __init__(self) -> None:
        self.share = 0  # As the last answer has it.
        self.may_have = 0  # In flight.
        self.in_flight = 0
        self.said = 0  # What was in flight, as the last question has it.
        self.unsent: deque[Granted] = deque()
        self.refusals: set[str] = set()  # By token: of which the frontier has not heard.
        self.is_next = False  # Among those that wait for a slot.

    @property
    def may_send(self) -> bool:
        return self.in_flight < self.may_have and bool(self.unsent)


class Shares:
    """The shares of a worker, and its shared leases until their requests are answered."""

    def __init__(self) -> None:
        self.unsent = 0
        """Leases whose requests have not been sent, of all hosts."""
        self._hosts: dict[str, _Host] = {}
        self._sent: dict[str, _Host] = {}  # By token: what is at a host.
        self._next: deque[_Host] = deque()  # What may send, in turn, once there is a slot.
        self._send_by = 0.0

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def unfilled(self) -> int:
        """Requests that might be in flight beside those that are, if there were leases for them."""
        return sum(
            max(host.may_have - host.in_flight, 0)
            for host in self._hosts.values()
            if not host.unsent
        )

    @property
    def left(self) -> int:
        """Leases that the frontier would grant us of these hosts, beside those that wait."""
        return sum(
            max(host.share * AHEAD_PER_SHARE - len(host.unsent), 0) for host in self._hosts.values()
        )

    # Questions and answers

    def say(self) -> dict[str, Holding]:
        """What a question has to say of our shares."""
        for host in self._hosts.values():
            host.said = host.in_flight
            host.may_have = min(host.may_have, host.in_flight)
        return {
            name: Holding(host.in_flight, len(host.unsent)) for name, host in self._hosts.items()
        }

    def told(self, shares: Mapping[str, int], send_by: float) -> list[Lease]:
        """Our shares are these from now on, and no others; what is not sent by a moment needs
        another answer. Returns what is to be given back. A host is forgotten when the frontier
        knows that nothing of ours is there."""
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
        """Nothing is in flight any more, and nothing will be. Returns what is to be said of it."""
        given_up = {name: Holding(0, 0) for name in self._hosts}
        self._hosts.clear()
        return given_up

    # Leases

    def hold(self, granted: Granted) -> None:
        """This was granted. It waits at least until it is `told` how much may be in flight."""
        name = granted[0].task.site
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
        host.unsent.append(granted)
        self.unsent += 1

    def send_next(self) -> Ready | None:
        """There is a slot. Returns what is to be visited in it: hosts have their turns."""
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
        """Its request is not at the host any more. May be said more than once."""
        host = self._sent.pop(lease.token, None)
        if host is not None:
            host.in_flight -= 1
            self._line_up(host)

    def refused(self, lease: Lease) -> None:
        """The host asks for less: it gets nothing until the frontier has heard of it, and says how
        much it may be."""
        host = self._hosts.get(lease.task.site)
        if host is not None:
            host.may_have = 0
            host.refusals.add(lease.token)

    def heard(self, lease: Lease) -> None:
        """The frontier knows that this was refused."""
        host = self._hosts.get(lease.task.site)
        if host is not None:
            host.refusals.discard(lease.token)

    def give_back(self, until: float) -> list[Lease]:
        """What was granted until a moment and has not been sent is to be given back."""
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
