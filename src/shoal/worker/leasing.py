"""Decides what a worker asks for, what it visits and what it gives back. Pure.

Callers report what has happened, and when; the return values say what to do. There is no clock
here, no event loop and no store: see worker.py for those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import NamedTuple, Protocol

from shoal.core.ledger import Cause
from shoal.core.policy import SEND_SLACK_S
from shoal.frontier.values import CrawlState, Grant, Holding, Lease, Outcome, Verdict
from shoal.worker.shares import Granted, Ready, Shares

POLL_S = 0.25
"""How often an idle worker looks for work that others added."""

ASK_EVERY_S = 0.01
"""The least time between two questions: each costs the same, however much it brings."""

SOON_S = 0.05
"""How long to wait for leases that come along with a commit, before asking apart from it."""

IDLE_S = 0.003
"""How long half of the slots may be idle while a batch is being saved."""

HELD_PER_SLOT = 12
"""The most leases held, per slot. Most of those not in flight wait to be committed: when the stores
are slow this fills up, and nothing more is leased."""

AHEAD_S = 0.08
"""Leases are taken ahead for what is visited in this time: about as long as it takes until a batch
is committed and new leases come. A worker whose pages are slow takes none ahead of others."""

AHEAD_PER_SLOT = 4
"""The most leases taken ahead, per slot."""

STUCK_S = 10.0
"""Leases that have waited this long for a slot are given back: the site has stalled, and other
workers may have nothing to do."""

SEND_PART = 0.5
"""The part of a lease time in which requests are sent by a share. A share lasts for one lease time
after it was told; the rest of that time is for the answers."""

MAX_HELD_BYTES = 64 * 1024 * 1024
"""Nothing more is leased while what waits for the stores takes more memory than this."""


class Backlog(Protocol):
    """What waits for the stores: see Committer."""

    held_bytes: int
    """The bytes of memory that it takes."""
    busy_since: float | None
    """When the batch that is being committed was begun. None if there is none."""
    is_saving: bool
    """Whether that batch is being saved to results or the archive, and not yet finished in the
    frontier."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits besides the batch that is being committed."""


class Question(NamedTuple):
    """What to ask the frontier for, and what to tell it: see `Ask`."""

    room: int
    holdings: dict[str, Holding]
    slots: int = 0
    """Free slots that no lease waits for. What leaves by an exit leaves at once or not at all."""


class Moves(NamedTuple):
    """What to do after a grant: leases to visit now, and leases to give back."""

    visit: list[Ready]
    give_back: list[Lease]


class Leasing:
    """A worker's leases, from the grant to the end of the task.

    Each lease is first ready, then in flight, then with the committer, which finishes it. A lease
    that is given back is never in flight. There is one question at a time: `ask` opens it, and
    `granted` or `not_granted` answers it.

    Plain leases are visited as soon as there is a slot. Shared ones also wait until less is in
    flight at their host than this worker may have there: see shares.py.
    """

    def __init__(self, slots: int) -> None:
        self.held: dict[str, Lease] = {}
        """Leases that were granted and are not finished, by token."""
        self.ready: deque[Granted] = deque()
        """Leases that wait only for a slot, oldest first."""
        self.shares = Shares()
        self.in_flight = 0
        """Visits that are under way."""
        self.is_over = False
        """Whether the crawl had ended when it last granted anything."""
        self.is_draining = False
        self._slots = slots
        self._send_s = 0.0  # For how long requests are sent by a share after it was told.
        self._is_asking = False
        self._asked = 0  # How many leases the open question asks for.
        self._ask_at = 0.0
        self._look_at = 0.0
        self._has_others = False
        self._ahead = 0
        self._finished_at = 0.0
        self._is_quick = False
        self._is_scarce = False
        self._is_alone = False
        self._idle_as = Cause.FRONTIER

    # Asking

    def begin(self, now: float, lease_s: float) -> None:
        """The crawl runs, for the first time or again. Its leases and shares last `lease_s`
        seconds."""
        self.is_over = False
        self._finished_at = now  # The first batch is timed from here.
        self._send_s = lease_s * SEND_PART

    def wait_s(self, now: float, backlog: Backlog) -> float | None:
        """How long to wait until it is time to `ask`: 0 or less means now; None means until
        something has happened."""
        if self._room(backlog) > 0:
            ask_at = self._ask_at
        elif self.shares:
            ask_at = self._look_at  # Others may wait for our shares, even if we can take nothing.
        else:
            return None
        return max(ask_at - now, self._leases_expected_s(now, backlog))

    def ask(self, now: float, backlog: Backlog) -> Question | None:
        """Open a question. None: there is nothing to ask for now, and nothing to tell."""
        if self._is_asking or self.is_over or self.is_draining:
            return None
        room = max(self._room(backlog), 0)
        if not room and now >= self._look_at and self._may_look(backlog):
            room = 1
        if not room and not self.shares:
            return None
        self._is_asking, self._asked = True, room
        slots = max(self._slots - self.in_flight - len(self.ready), 0)
        return Question(room, self.shares.say() if self.shares else {}, min(slots, room))

    def not_granted(self) -> None:
        """The open question has failed."""
        self._is_asking, self._asked = False, 0

    def granted(self, grant: Grant, now: float) -> Moves:
        """The open question was answered. Once the worker was told to drain, everything is given
        back: nobody would wait for it any more."""
        self.is_over = grant.state.over
        self._ask_at = now + _ask_again_s(grant, self._asked)
        self._look_at = now + POLL_S
        self._idle_as = _idle_as(grant, self._asked)
        self._is_asking, self._asked = False, 0
        if leases := grant.leases:
            self._is_scarce = any(map(_is_scarce, leases))
            self._is_alone = any(lease.alone for lease in leases)
        self._has_others = any(self._is_elsewhere(lease) for lease in leases)
        self._hold(leases, grant.decided)
        given_back: list[Lease] = []
        if self.shares or grant.shares:
            given_back = self.shares.told(grant.shares, grant.decided + self._send_s)
        if self.is_draining:
            return Moves([], given_back + self.give_back_ready())
        return Moves(self._next_visits(), given_back)

    def _hold(self, leases: list[Lease], decided: float) -> None:
        for lease in leases:
            self.held[lease.token] = lease
            if lease.shared:
                self.shares.hold((lease, decided))
            else:
                self.ready.append((lease, decided))

    def crawl_gone(self) -> None:
        """The open question was about a crawl that no longer exists."""
        self._is_asking, self._asked = False, 0
        self.is_over = True

    def idle_as(self, backlog: Backlog) -> Cause:
        """Return what idle slots wait for. If the last answer brought less than was asked for,
        they wait for the cause it gave, until an answer says otherwise."""
        if self.is_full(backlog):
            return Cause.STORES if backlog.is_saving else Cause.FRONTIER
        if self._idle_as is not Cause.FRONTIER:
            return self._idle_as
        if self._room(backlog) <= 0:  # There are free slots, but all our shares are in use.
            return Cause.POLITE
        return Cause.STORES if backlog.is_saving and not self._is_asking else Cause.FRONTIER

    def is_full(self, backlog: Backlog) -> bool:
        """Whether no more may be leased until something is finished."""
        return self._most(backlog) <= 0

    def _room(self, backlog: Backlog) -> int:
        """Return how many leases to ask for.

        Slots that our shares leave idle are for other hosts, if there are any. Otherwise leases for
        them, which would have to wait for their host, are taken only where pages are quick, and no
        more are asked for than the hosts would grant.
        """
        free = self._slots - self.in_flight
        waiting = len(self.ready) + self.shares.unsent
        wanted = free + self._ahead - waiting if self._is_quick else 0
        most = self._most(backlog)
        if self.shares and not self._has_others:
            free = min(free, self.shares.unfilled)
            most = min(most, self.shares.left)
        return min(max(wanted, free + max(self._ahead - waiting, 0)), most)

    def _most(self, backlog: Backlog) -> int:
        """Return how many leases may be taken: none beside a task that must be alone, and none
        while there is much to store."""
        held = len(self.held)
        if (self._is_alone and held) or backlog.held_bytes > MAX_HELD_BYTES:
            return 0
        return self._slots * HELD_PER_SLOT - held

    def _may_look(self, backlog: Backlog) -> bool:
        """Whether to look, from time to time, for work of hosts other than those we share: our
        shares leave slots idle."""
        return bool(self.shares) and self.in_flight < self._slots and self._most(backlog) > 0

    def _is_elsewhere(self, lease: Lease) -> bool:
        """Whether a lease shows that there is work beyond the hosts that we have shares of."""
        return not lease.shared or (bool(self.shares) and lease.task.site not in self.shares)

    def _leases_expected_s(self, now: float, backlog: Backlog) -> float:
        """Return how long to wait for a commit to bring new leases with it. A worker with half of
        its slots idle does not wait for a store that takes long to save."""
        if self._is_asking or self.ready:
            return SOON_S
        if backlog.busy_since is None:
            return 0.0 if backlog.is_empty else SOON_S
        is_idle = self.in_flight * 2 < self._slots and not self.shares.unsent
        return backlog.busy_since + (IDLE_S if is_idle else SOON_S) - now

    # Visits

    @property
    def is_short(self) -> bool:
        """Whether no lease waits to be visited."""
        return not self.ready and not self.shares.unsent

    def answered(self, lease: Lease) -> Ready | None:
        """The request of a shared lease is not at its host any more. Returns the lease to visit now
        beside it."""
        self.shares.answered(lease)
        if self.in_flight >= self._slots or (following := self.shares.send_next()) is None:
            return None
        self.in_flight += 1
        return following

    def visit_over(self, outcome: Outcome) -> Ready | None:
        """A visit is over and its slot is free. Returns the lease to visit in it now."""
        if outcome.lease.shared:
            if outcome.pushback is not None and outcome.pushback.meant:
                self.shares.refused(outcome.lease)
            if not outcome.fault:
                self.shares.answered(outcome.lease)
        following = self._following()
        if following is None:
            self.in_flight -= 1
        return following

    def _following(self) -> Ready | None:
        if self.ready:
            lease, decided = self.ready.popleft()
            # A host without a rate can wait. An exit cannot: it has a clock too.
            is_now = lease.paced or _is_lent(lease)
            return lease, decided + SEND_SLACK_S if is_now else inf
        return self.shares.send_next() if self.shares.unsent else None

    def _next_visits(self) -> list[Ready]:
        visits: list[Ready] = []
        while self.in_flight < self._slots and (following := self._following()) is not None:
            self.in_flight += 1
            visits.append(following)
        return visits

    # The end of leases

    def finished_apart(self) -> None:
        """Tries were finished without a question: hosts have room again, and there may be new
        tasks."""
        self._ask_at = 0.0

    def finished(self, outcomes: Iterable[Outcome], now: float) -> list[Ready]:
        """These tries have ended for good. Returns what to visit now.

        A request that failed at its host makes room for the next only here, so that a host which is
        down gets no more requests than the frontier wants.
        """
        visited = 0
        for outcome in outcomes:
            visited += outcome.verdict is not Verdict.RETURNED
            del self.held[outcome.lease.token]
            if outcome.fault and outcome.lease.shared:
                self.shares.answered(outcome.lease)
            if outcome.pushback is not None:
                self.shares.heard(outcome.lease)
        self._look_ahead(visited, now)
        return self._next_visits() if self.shares.unsent else []

    def give_back_ready(self, until: float = inf) -> list[Lease]:
        """Return the leases to give back: those granted until `until` that are not in flight."""
        given_back = []
        while self.ready and self.ready[0][1] <= until:
            lease, _ = self.ready.popleft()
            given_back.append(lease)
        given_back += self.shares.give_back(until)
        if given_back:
            self._ahead = 0  # No others are taken in their place.
        return given_back

    def give_back_stuck(self, now: float) -> list[Lease]:
        """Return the leases to give back because they have waited too long for a slot."""
        return self.give_back_ready(until=now - STUCK_S)

    def start_over(self) -> list[Lease]:
        """The crawl was started over. Returns its old shared leases that are not in flight, to give
        back."""
        return self.shares.give_back(inf)

    def drain(self) -> list[Lease]:
        """Ask for no more leases and begin no more visits. Returns the leases to give back."""
        self.is_draining = True
        return self.give_back_ready()

    def _look_ahead(self, visited: int, now: float) -> None:
        """Decide how many leases to take ahead of their visits: none while there are enough slots
        for what comes.

        What must be sent now or not at all cannot wait for a slot. And at a host that is full,
        others wait for what we hold.
        """
        per_second = visited / max(now - self._finished_at, ASK_EVERY_S)
        self._finished_at = now
        self._is_quick = visited >= self._slots and not self._is_scarce
        # Shared leases wait for more than a slot, so at least one is always taken ahead.
        has_shares = len(self.shares) > 0 and not self._is_scarce
        most = self._slots * AHEAD_PER_SLOT if self._is_quick or has_shares else 0
        self._ahead = min(int(per_second * AHEAD_S) + has_shares, most)


def _is_scarce(lease: Lease) -> bool:
    """Whether such a lease is of no use before there is a slot for it."""
    return lease.paced or lease.crowded or _is_lent(lease)


def _is_lent(lease: Lease) -> bool:
    """Whether something that others wait for is lent with it: an exit or an account."""
    return lease.lent is not None or lease.identity is not None


def _idle_as(grant: Grant, asked: int) -> Cause:
    """Return what idle slots wait for until the next answer."""
    if len(grant.leases) >= asked:
        return Cause.FRONTIER
    is_running = grant.state is CrawlState.RUNNING
    return Cause.POLITE if grant.has_waiting and is_running else Cause.STARVED


def _ask_again_s(grant: Grant, asked: int) -> float:
    """Return how long to wait before asking again: a moment if the last grant was full, otherwise
    until a host may be sent to again."""
    wait_s = grant.wait_s
    if len(grant.leases) >= asked:
        wait_s = 0.0
    elif wait_s is None:
        wait_s = POLL_S
    return min(max(wait_s, ASK_EVERY_S), POLL_S)
