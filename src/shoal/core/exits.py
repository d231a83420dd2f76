"""Exits: the ways out that requests may leave by, as the fleet knows them. Values only.

An exit is a proxy, a session at a provider's gateway, or an address of this machine. A frontier
knows exits by their ids and never by their addresses: those may hold passwords, and stay with the
workers.

A request by an exit waits for three clocks: that of its host, that of the exit over all hosts and
crawls, and that of the pair of both. What they say is decided in exit_policy.py.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

Rotation = Literal["rested", "random", "best"]


class PoolRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the fleet agrees on of a pool. Stored with the frontier; no address is in it."""

    name: str
    rotation: Rotation = "rested"
    """Which of the exits that may be used goes first: the one that was not used for longest, any,
    or the one with the best score at the host."""
    sticky_s: float = 0.0
    """So long a host is visited by the exits it was visited by first, if these may be used."""
    interval_s: float = 0.0
    """The time between two requests by one exit, over all hosts and crawls."""
    pair_interval_s: float = 0.0
    """The time between two requests by one exit to one host."""
    concurrency: int = 8
    """Requests in flight by one exit, over all hosts and crawls."""
    escalate_to: str = ""
    """The pool whose exits are used at hosts that block those of this one."""
    allow_direct: bool = False
    """Whether a request may leave without an exit while none can be used."""
    timeout_s: float = 3600.0
    """A task that no exit could be used for during this time is dead."""
    is_gateway: bool = False
    """Whether its exits are sessions at a gateway: one that is blocked becomes another session."""
    per_gb: float = 0.0
    per_request: float = 0.0
    budget: float = 0.0
    """What may be spent in a period. 0: as much as it takes."""
    budget_period_s: float = 86_400.0
    through: str = ""
    """Of a group of accounts (identities.py): the pool by whose exits they leave. Empty: directly.
    """
    most_bytes: int = 8 * 1024 * 1024
    """What one request and its answer may take of the network: so much is set aside for each that
    is in flight, so that a budget is never overspent."""

    @property
    def is_paced(self) -> bool:
        """Whether a request by one of its exits must leave in its turn: see `Lease.paced`."""
        return self.interval_s > 0 or self.pair_interval_s > 0

    @property
    def most_cost(self) -> float:
        """What one request may cost at most."""
        return self.per_request + self.per_gb * self.most_bytes / 1e9


class ExitEntry(msgspec.Struct, frozen=True):
    """An exit, as a worker that has read the pool's list tells the frontier of it."""

    id: str
    kind: str = ""
    """datacenter, residential, or nothing."""
    country: str = ""


class Exit(msgspec.Struct, kw_only=True):
    """How an exit is doing."""

    id: str
    pool: str
    kind: str = ""
    country: str = ""
    is_listed: bool = True
    """Whether it is in the list that was read last. If not, it is not used."""
    session: int = 0
    """Which session it is by now, at a gateway."""
    next_at: float = 0.0
    leased: int = 0
    faults: int = 0
    """Transport faults in a row."""
    out_until: float = 0.0
    out_at: float = 0.0
    """When it was last put out."""
    used_at: float = 0.0
    """When it was last handed out."""
    good: float = 0.0
    bad: float = 0.0
    """Answers and blocks, those of long ago counting less: as of `scored_at`."""
    scored_at: float = 0.0
    requests: int = 0
    wire_bytes: int = 0
    faulty_hosts: list[str] = []
    """Hosts it could not reach since `faulty_since`, each once."""
    faulty_since: float = 0.0
    cooling: int = 0
    """Hosts at which it cools down now. Only in what a frontier gives out."""


class Pair(msgspec.Struct, kw_only=True):
    """How an exit is doing at one host. There is one only where there is something to say."""

    session: int = 0
    """Of which session of the exit this was said. Of another it says nothing."""
    since: float = 0.0
    """When the host was first visited by it, since it was last let go: see `PoolRules.sticky_s`."""
    next_at: float = 0.0
    level: int = 0
    cool_until: float = 0.0
    blocked_at: float = 0.0
    """When the level was last raised."""
    is_tried: bool = False
    """Whether the one request is in flight that may be while the level is above 0."""
    good: float = 0.0
    bad: float = 0.0
    scored_at: float = 0.0


class Lane(msgspec.Struct, kw_only=True):
    """How a host is doing with the exits of one pool: what decides how its tasks are served."""

    tier: int = 0
    """How many steps of `escalate_to` its tasks go up."""
    probe_at: float = 0.0
    """When the tier below is next tried."""
    good_probes: int = 0
    """In a row."""
    window_at: float = 0.0
    answers: int = 0
    blocks: int = 0
    blocked_exits: list[str] = []
    """What came since `window_at`, by exits of the tier; the first few exits that were blocked."""
    site_until: float = 0.0
    """Until then a block is the word of the site, and no exit is to blame."""
    faulty_exits: list[str] = []
    faulty_since: float = 0.0
    """Exits that could not reach the host, each once."""
    starved_at: float = 0.0
    """Since when no exit could be used. 0 if one can."""
    looked_at: float = 0.0


class Spent(msgspec.Struct, kw_only=True):
    """What a pool has cost."""

    period: int = 0
    """Which period of the budget it is: its number since 1970."""
    spent: float = 0.0
    """In this period."""
    leased: int = 0
    """Requests in flight, of all its exits."""
    requests: int = 0
    wire_bytes: int = 0
    total: float = 0.0
    """In all periods."""


class Blame(StrEnum):
    """Who is to blame for a try by an exit that had no answer."""

    NOBODY = "nobody"
    EXIT = "exit"
    """It could not be reached, did not let us in, or does not speak as it should."""
    PAIR = "pair"
    """It could not reach the host."""
    FORGED = "forged"
    """It answered with a certificate that is not the host's."""


class Lent(msgspec.Struct, frozen=True):
    """The exit that a lease lets its request leave by."""

    exit: str
    """Its id. Empty: the request may leave directly, as its pool allows."""
    session: int = 0
    pool: str = ""
    """The exit's own pool: another than the task's, if the host blocks those."""
    blocks: int = 0
    """How often the task was blocked before."""
    tried: int = 0
    """By how many exits."""


class Passage(msgspec.Struct, frozen=True):
    """What a try by an exit says of the exit."""

    blame: Blame = Blame.NOBODY
    block: str = ""
    """What kind of block it met. Empty: none."""
    retry_after_s: float = 0.0
    dice: float = 0.0
    """A random number in [0, 1): what was blocked together should not come back together."""


class PoolState(msgspec.Struct, kw_only=True):
    """A pool and how it is doing, for those who ask."""

    rules: PoolRules
    exits: int = 0
    """Those that are listed."""
    ready: int = 0
    cooling: int = 0
    """Not out, but cooling down at one host at least."""
    out: int = 0
    spent: Spent = msgspec.field(default_factory=Spent)


class LaneState(msgspec.Struct, kw_only=True):
    """The tasks of a host that wait for exits of one pool, for those who ask."""

    host: str
    pool: str
    waiting: int = 0
    tier_pool: str = ""
    """The pool whose exits are used now."""
    is_site_blocking: bool = False
    starved_s: float = 0.0
    """For how long no exit could be used."""
