"""Work on its way to workers: entries, leases, and what a worker asks for and is granted."""

from __future__ import annotations

import time

import msgspec

from shoal.core.cookies import Jar
from shoal.core.exits import Lent
from shoal.core.identities import LeasedIdentity
from shoal.core.task import Task
from shoal.frontier.values.states import CrawlState


class Entry(msgspec.Struct, frozen=True):
    """A task that was admitted: its URL is checked and its fingerprint known."""

    fingerprint: bytes
    task: Task
    retry: bool = False
    """Whether `add` retries the task if it is dead."""
    shape: str | None = None
    """For a link, in a crawl that limits links: the shape of its address (see core/shapes.py), or
    empty if only its host counts."""


class Lease(msgspec.Struct):
    """The right to work on a task, and to send its request now."""

    fingerprint: bytes
    token: str
    task: Task
    robots_at: float | None = None
    """When the host's robots.txt was stored. None, in a crawl that obeys robots.txt, if it was not
    fetched yet: this lease is then the permission to fetch robots.txt instead of the page."""
    paced: bool = False
    """The host has a rate: if the request is not sent within `policy.SEND_SLACK_S`, the lease must
    be given back."""
    alone: bool = False
    """Workers died with this task: the worker holds nothing else, and must not ask for more until
    this task is finished."""
    crowded: bool = False
    """With this lease, the host has no room left: other workers wait for it."""
    shared: bool = False
    """The request may be sent only while the worker has less in flight at the host than its share:
    see `Grant.shares`."""
    clock_s: float = 0.0
    """The frontier's time at the moment when our time.monotonic() was 0."""
    lent: Lent | None = None
    """The exit that the request must leave by. Set for tasks with a pool, and for tasks with a
    session whose group uses a pool; for no others."""
    cookies: Jar | None = None
    """The cookies of the task's chain, if the crawl keeps cookies. None: there are none."""
    identity: LeasedIdentity | None = None
    """The identity that the request is sent with. Set for tasks with a session, and for no others.
    If it is logged out, the lease is the permission to log in instead; each further request of the
    login asks for a turn: see `WorkSource.turn`."""

    def now(self) -> float:
        """The frontier's time: the same for all workers, whatever their own clocks say."""
        return self.clock_s + time.monotonic()


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """What a worker has of a host that it shares with other workers."""

    in_flight: int
    """Requests of shared leases that are at the host now. A failed request counts until its outcome
    is finished, so that the frontier learns of a host that is down before the next one is sent."""
    unsent: int
    """Shared leases whose requests have not been sent."""


class Ask(msgspec.Struct, frozen=True):
    """A worker's request for work. Everything that decides which tasks a worker can take belongs
    here: the identities it holds, its exits, its fetchers."""

    worker: str
    room: int
    """How many tasks it can take."""
    holdings: dict[str, Holding] = {}
    """What it has of the hosts that it shares, by host. A host stays in this list from the first
    share that the worker is given until its share is 0 and it has reported that it has nothing of
    that host."""
    pools: tuple[str, ...] = ()
    """The pools whose exits' addresses it knows, and the groups whose accounts' passwords it knows.
    It gets no tasks of other pools and groups."""
    slots: int = 0
    """How many tasks with exits or accounts it can take. These are sent at once, never leased
    ahead."""


class Grant(msgspec.Struct):
    """The answer to an `Ask`."""

    state: CrawlState
    leases: list[Lease] = []
    shares: dict[str, int] = {}
    """How many requests of shared leases the worker may have in flight from now on, by host: for
    every host that the ask named, and those whose tasks are handed out shared. 0: none may be sent,
    and leases that were not sent are to be given back."""
    wait_s: float | None = None
    """After how long asking again makes sense. None: only new work can change anything."""
    has_waiting: bool = False
    """Whether more tasks wait beside these. If fewer were granted than asked for, the others may
    not be sent yet."""
    epoch: int = 0
    """Identifies the crawl among those of its name: another number means that it was started
    over."""
    decided: float = 0.0
    """time.monotonic() at or before the moment of the grant. `policy.SEND_SLACK_S` runs from
    there."""
