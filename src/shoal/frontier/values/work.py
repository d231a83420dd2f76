"""Work as it goes out to workers: entries, leases, and what a worker asks for and is granted."""

from __future__ import annotations

import time

import msgspec

from shoal.core.cookies import Jar
from shoal.core.exits import Lent
from shoal.core.identities import LeasedIdentity
from shoal.core.task import Task
from shoal.frontier.values.states import CrawlState


class Entry(msgspec.Struct, frozen=True):
    """A task that has passed admission: its address is checked and its identity known."""

    fingerprint: bytes
    task: Task
    retry: bool = False
    """Whether `add` gives it a fresh start if it is dead."""
    shape: str | None = None
    """Of a link in a crawl that limits these: the shape of its address, see core/shapes.py; empty
    if only its host counts."""


class Lease(msgspec.Struct):
    """The right to work on a task, and to send its request now."""

    fingerprint: bytes
    token: str
    task: Task
    robots_at: float | None = None
    """When the host's robots.txt was stored. None where the crawl obeys robots.txt and nobody has
    fetched it: this lease is then the permission to fetch robots.txt instead of the page."""
    paced: bool = False
    """The host has a rate: what is not sent within `policy.SEND_SLACK_S` must be given back."""
    alone: bool = False
    """Workers died with this task: the worker holds nothing else, and must ask for nothing else
    until this is finished."""
    crowded: bool = False
    """The host has no room for more, with this one: others wait for it."""
    shared: bool = False
    """The request may be sent while the worker has less in flight at the host than its share of it:
    see `Grant.shares`."""
    clock_s: float = 0.0
    """The frontier's time when our time.monotonic() was 0."""
    lent: Lent | None = None
    """The exit that its request leaves by. Set for every task with a pool, and for those with a
    session whose group goes by one, and for no other: such a request may leave in no other way."""
    cookies: Jar | None = None
    """What its chain has kept, where the crawl keeps cookies. None if that is nothing."""
    identity: LeasedIdentity | None = None
    """The identity that its request is sent with. Set for every task with a session, and for no
    other. One that is logged out makes the lease the permission to log in instead; further requests
    of the login ask for a turn each: see `WorkSource.turn`."""

    def now(self) -> float:
        """The frontier's time, which is the same for all workers whatever their own clocks say."""
        return self.clock_s + time.monotonic()


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """What a worker has of a host that it shares with others."""

    in_flight: int
    """Requests of shared leases that are at the host now. One that failed counts until its outcome
    is finished: the frontier is to hear of a host that is down before the next one is sent."""
    unsent: int
    """Shared leases whose requests have not been sent."""


class Ask(msgspec.Struct, frozen=True):
    """A worker asks for work: who it is, and what it has to do it with. Whatever decides which
    tasks a worker can take belongs here: identities it holds, exits, the fetchers it has."""

    worker: str
    room: int
    """How many tasks it can take."""
    holdings: dict[str, Holding] = {}
    """By host, what it has of those that it shares: all of which it was ever told a share, until it
    is told 0 and has said that nothing of its own is there."""
    pools: tuple[str, ...] = ()
    """The pools whose exits it knows the addresses of, and the groups whose accounts it knows the
    passwords of. It gets no tasks of others."""
    slots: int = 0
    """How many tasks by exits, or with accounts, it can take: they are sent at once, so none is
    taken ahead."""


class Grant(msgspec.Struct):
    """The answer to an `Ask`."""

    state: CrawlState
    leases: list[Lease] = []
    shares: dict[str, int] = {}
    """By host, how many requests of shared leases the worker may have in flight from now on. Says
    so of every host that the ask named, and of those whose tasks are handed out shared. 0: none may
    be sent, and what was not sent is to be given back."""
    wait_s: float | None = None
    """When asking again makes sense; None if only new work can change anything."""
    has_waiting: bool = False
    """Whether tasks wait, beside these. Where fewer were granted than asked for, they may not be
    sent yet."""
    epoch: int = 0
    """Which crawl of this name it is: another number means that it was started over."""
    decided: float = 0.0
    """time.monotonic() at or before the moment of the grant: `policy.SEND_SLACK_S` runs from it."""
