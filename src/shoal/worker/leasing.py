"""What a worker asks for, what it visits and what it gives back. Decisions only.

Calls tell what has happened, and when; what they return is to be done. There is no clock in here,
no event loop and no store: see worker.py for those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import NamedTuple, Protocol

from shoal.frontier.values import Grant, Lease, Outcome, Verdict

POLL_S = 0.25
"""How often an idle worker looks for work that others brought."""

ASK_EVERY_S = 0.01
"""The least time between two questions: each costs the same, however much it brings."""

SOON_S = 0.05
"""How long to wait for leases that come along with a commit, before asking apart from it."""

IDLE_S = 0.003
"""How long half of the slots may stand idle while a batch is being saved."""

HELD_PER_SLOT = 12
"""Leases held at most, per slot. Most of what is not in flight waits to be committed: when the
stores are slow this fills up, and nothing more is leased."""

AHEAD_S = 0.08
"""Leases are taken ahead for what is visited in this time: about as long as it takes until a batch
is committed and new ones come. A worker whose pages are slow takes none ahead of others."""

AHEAD_PER_SLOT = 4
"""Leases taken ahead at most, per slot."""

STUCK_S = 10.0
"""Leases that have waited so long for a slot are given back: the site has come to a stand, and
other workers may have nothing to do."""

MAX_HELD_BYTES = 64 * 1024 * 1024
"""Nothing more is leased while what waits for the stores takes so much memory."""


class Backlog(Protocol):
    """What waits for the stores: see Committer."""

    held_bytes: int
    """What it takes in memory."""
    busy_since: float | None
    """When the batch was begun that is being committed. None if there is none."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits beside the batch that is being committed."""


Ready = tuple[Lease, float]
"""A lease whose visit may begin, and when it was granted: see `Grant.decided`."""


class Moves(NamedTuple):
    """What to do with what was granted."""

    visit: list[Ready]
    give_back: list[Lease]


class Leasing:
    """A worker's leases, from the grant to the end of the task.

    Each is first ready, then in flight, then with the committer, which finishes it. What is given
    back skips the flight. Nobody asks while a question is open: `ask` opens one, and `granted` or
    `not_granted` answers it.
    """

    def __init__(self, slots: int) -> None:
        self.held: dict[str, Lease] = {}
        """What was granted and is not finished, by token."""
        self.ready: deque[Ready] = deque()
        """What waits for a slot, oldest first."""
        self.in_flight = 0
        self.is_over = False
        """Whether the crawl had ended when it last granted anything."""
        self.is_draining = False
        self._slots = slots
        self._asked = 0  # Of the open question.
        self._ask_at = 0.0
        self._ahead = 0
        self._finished_at = 0.0
        self._is_scarce = False
        self._is_alone = False

    # Asking

    def begin(self, now: float) -> None:
        """The crawl runs, for the first time or again."""
        self.is_over = False
        self._finished_at = now  # The first batch takes its time from here.

    def wait_s(self, now: float, backlog: Backlog) -> float | None:
        """How long to wait until it is time to `ask`: not at all if 0 or less; until something
        has happened if None."""
        if self._room(backlog) <= 0:
            return None
        return max(self._ask_at - now, self._leases_expected_s(now, backlog))

    def ask(self, backlog: Backlog) -> int:
        """Open a question for so many leases. 0: there is nothing to ask for now."""
        if self._asked or self.is_over or self.is_draining:
            return 0
        self._asked = max(self._room(backlog), 0)
        return self._asked

    def not_granted(self) -> None:
        """The question has failed."""
        self._asked = 0

    def granted(self, grant: Grant, now: float) -> Moves:
        """The question was answered. Once we were told to stop all is given back: nobody would
        wait for it any more."""
        self.is_over = grant.state.over
        self._ask_at = now + _ask_again_s(grant, self._asked)
        self._asked = 0
        if leases := grant.leases:
            self._hold(leases, grant.decided)
            self._is_scarce = any(lease.paced or lease.crowded for lease in leases)
            self._is_alone = any(lease.alone for lease in leases)
        if self.is_draining:
            return Moves([], self.give_back_ready())
        return Moves(self._next_visits(), [])

    def _hold(self, leases: list[Lease], decided: float) -> None:
        for lease in leases:
            self.held[lease.token] = lease
            self.ready.append((lease, decided))

    def crawl_gone(self) -> None:
        """The question was about a crawl that does not exist any more."""
        self._asked = 0
        self.is_over = True

    def _room(self, backlog: Backlog) -> int:
        """How many leases to ask for: none beside a task that must be alone, nor while there is
        much to store."""
        held = len(self.held)
        if (self._is_alone and held) or backlog.held_bytes > MAX_HELD_BYTES:
            return 0
        wanted = self._slots + self._ahead - self.in_flight - len(self.ready)
        return min(wanted, self._slots * HELD_PER_SLOT - held)

    def _leases_expected_s(self, now: float, backlog: Backlog) -> float:
        """How long to wait for what is finished to bring new leases with it. With half of its
        slots idle, a worker does not wait for a store that takes long to save."""
        if self._asked or self.ready:
            return SOON_S
        if backlog.busy_since is None:
            return 0.0 if backlog.is_empty else SOON_S
        is_idle = self.in_flight * 2 < self._slots
        return backlog.busy_since + (IDLE_S if is_idle else SOON_S) - now

    # Visits

    def visit_over(self) -> Ready | None:
        """A slot is free. Returns what is to be visited in it now."""
        if self.ready:
            return self.ready.popleft()
        self.in_flight -= 1
        return None

    def _next_visits(self) -> list[Ready]:
        count = min(self._slots - self.in_flight, len(self.ready))
        self.in_flight += count
        return [self.ready.popleft() for _ in range(count)]

    # The end of leases

    def finished_apart(self) -> None:
        """Tries were finished without a question: hosts have room again, and there may be new
        tasks."""
        self._ask_at = 0.0

    def finished(self, outcomes: Iterable[Outcome], now: float) -> None:
        """These tries have ended for good."""
        visited = 0
        for outcome in outcomes:
            visited += outcome.verdict is not Verdict.RETURNED
            del self.held[outcome.lease.token]
        self._look_ahead(visited, now)

    def give_back_ready(self, until: float = inf) -> list[Lease]:
        """What waits for a slot and was granted until a moment is to be given back."""
        given_back = []
        while self.ready and self.ready[0][1] <= until:
            lease, _ = self.ready.popleft()
            given_back.append(lease)
            self._ahead = 0  # Others are not taken in its place.
        return given_back

    def give_back_stuck(self, now: float) -> list[Lease]:
        """What has waited too long for a slot is to be given back."""
        return self.give_back_ready(until=now - STUCK_S)

    def drain(self) -> list[Lease]:
        """Ask for no more, begin no more visits. Returns what is to be given back."""
        self.is_draining = True
        return self.give_back_ready()

    def _look_ahead(self, visited: int, now: float) -> None:
        """Decide how many leases to take ahead of their visits: none while there are slots enough
        for what comes. What may be sent now or not at all cannot wait for a slot, and of a host
        that is full, others wait for what we hold."""
        per_second = visited / max(now - self._finished_at, ASK_EVERY_S)
        self._finished_at = now
        is_quick = visited >= self._slots and not self._is_scarce
        most = self._slots * AHEAD_PER_SLOT if is_quick else 0
        self._ahead = min(int(per_second * AHEAD_S), most)


def _ask_again_s(grant: Grant, asked: int) -> float:
    """When to ask for more: soon if there was plenty, else when a host may be hit again."""
    wait_s = grant.wait_s
    if len(grant.leases) >= asked:
        wait_s = 0.0
    elif wait_s is None:
        wait_s = POLL_S
    return min(max(wait_s, ASK_EVERY_S), POLL_S)
