"""Exits: the ways out through which requests may leave, as the fleet knows them. Values only.

An exit is a proxy, a session at a provider's gateway, or an address of this machine. A frontier
knows exits by their ids and never by their addresses, which may hold passwords and stay with the
workers.

A request through an exit waits for three clocks: that of its host, that of the exit over all hosts
and crawls, and that of the pair of both. exit_policy.py decides what they say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

Rotation = Literal["rested", "random", "best"]


class PoolRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a pool, shared by the fleet. Stored in the frontier, without any address."""

    name: str
    rotation: Rotation = "rested"
    """Which of the usable exits goes first: the one unused for longest, any, or the one with the
    best score at the host."""
    sticky_s: float = 0.0
    """How long a host is visited by the exits that visited it first, while they may be used."""
    interval_s: float = 0.0
    """The time between two requests through one exit, over all hosts and crawls."""
    pair_interval_s: float = 0.0
    """The time between two requests through one exit to one host."""
    concurrency: int = 8
    """Requests in flight through one exit, over all hosts and crawls."""
    escalate_to: str = ""
    """The pool whose exits are used at hosts that block those of this one."""
    allow_direct: bool = False
    """Whether a request may leave without an exit while none can be used."""
    timeout_s: float = 3600.0
    """A task dies if no exit could be used for it during this time."""
    is_gateway: bool = False
    """Whether its exits are sessions at a gateway, where a blocked exit becomes another session."""
    per_gb: float = 0.0
    per_request: float = 0.0
    budget: float = 0.0
    """What may be spent in a period. 0: no limit."""
    budget_period_s: float = 86_400.0
    through: str = ""
    """For groups of accounts (identities.py): the pool of exits through which they leave. Empty:
    none."""
    most_bytes: int = 8 * 1024 * 1024
    """Bytes set aside for each request in flight and its response: so no budget is overspent."""

    @property
    def is_paced(self) -> bool:
        """Whether requests through its exits must leave in turn: see `Lease.paced`."""
        return self.interval_s > 0 or self.pair_interval_s > 0

    @property
    def most_cost(self) -> float:
        """The most that one request may cost."""
        return self.per_request + self.per_gb * self.most_bytes / 1e9


class ExitEntry(msgspec.Struct, frozen=True):
    """An exit as reported to the frontier by a worker that read the pool's list."""

    id: str
    kind: str = ""
    """`datacenter`, `residential`, or empty if unknown."""
    country: str = ""


class Exit(msgspec.Struct, kw_only=True):
    """The state of an exit."""

    id: str
    pool: str
    kind: str = ""
    country: str = ""
    is_listed: bool = True
    """Whether it was in the list when that was last read. If not, it is not used."""
    session: int = 0
    """Its current session, at a gateway."""
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
    """Good responses and blocks, of which older ones count less; as of `scored_at`."""
    scored_at: float = 0.0
    requests: int = 0
    wire_bytes: int = 0
    faulty_hosts: list[str] = []
    """Hosts that it could not reach since `faulty_since`, each once."""
    faulty_since: float = 0.0
    cooling: int = 0
    """Hosts at which it is cooling down now. Only set in what a frontier reports."""


class Pair(msgspec.Struct, kw_only=True):
    """The state of an exit at one host. Exists only while it carries information."""

    session: int = 0
    """The session of the exit that this pair describes. It says nothing about others."""
    since: float = 0.0
    """When the host was first visited through it since its last release: see `sticky_s`."""
    next_at: float = 0.0
    level: int = 0
    cool_until: float = 0.0
    blocked_at: float = 0.0
    """When the level was last raised."""
    is_tried: bool = False
    """Whether a request is in flight, of which there may be only one while the level is above 0."""
    good: float = 0.0
    bad: float = 0.0
    scored_at: float = 0.0


class Lane(msgspec.Struct, kw_only=True):
    """The state of a host with the exits of one pool, which decides how its tasks are served."""

    tier: int = 0
    """How many steps of `escalate_to` its tasks go up."""
    probe_at: float = 0.0
    """When the tier below is tried next."""
    good_probes: int = 0
    """Good probes in a row."""
    window_at: float = 0.0
    answers: int = 0
    blocks: int = 0
    blocked_exits: list[str] = []
    """With `answers` and `blocks`: what exits of the tier met since `window_at`. Only the first few
    blocked exits are listed."""
    site_until: float = 0.0
    """Until then blocks are blamed on the site, and on no exit."""
    faulty_exits: list[str] = []
    faulty_since: float = 0.0
    """With `faulty_exits`: the exits that could not reach the host since this time, each once."""
    starved_at: float = 0.0
    """Since when no exit could be used. 0 if one can."""
    looked_at: float = 0.0


class Spent(msgspec.Struct, kw_only=True):
    """What a pool has cost."""

    period: int = 0
    """The budget period of `spent`: its number since 1970."""
    spent: float = 0.0
    """The cost in this period."""
    leased: int = 0
    """Requests in flight through all its exits."""
    requests: int = 0
    wire_bytes: int = 0
    total: float = 0.0
    """The cost in all periods."""


class Blame(StrEnum):
    """What is to blame if a try through an exit got no response."""

    NOBODY = "nobody"
    EXIT = "exit"
    """The exit could not be reached, did not accept the login, or violated its protocol."""
    PAIR = "pair"
    """The exit could not reach the host."""
    FORGED = "forged"
    """The exit presented a certificate that is not the host's."""


class Lent(msgspec.Struct, frozen=True):
    """The exit through which a leased request may leave."""

    exit: str
    """Its id. Empty: the request may leave directly, as its pool allows."""
    session: int = 0
    pool: str = ""
    """The pool of the exit. It differs from the task's pool if the host blocks that one."""
    blocks: int = 0
    """How often the task was blocked before."""
    tried: int = 0
    """Through how many exits."""


class Passage(msgspec.Struct, frozen=True):
    """What a try through an exit says about the exit."""

    blame: Blame = Blame.NOBODY
    block: str = ""
    """The kind of block it met. Empty: none."""
    retry_after_s: float = 0.0
    dice: float = 0.0
    """A random number in [0, 1): exits blocked together should not return together."""


class PoolState(msgspec.Struct, kw_only=True):
    """A pool and its state, as reported to users."""

    rules: PoolRules
    exits: int = 0
    """Exits that are listed."""
    ready: int = 0
    cooling: int = 0
    """Exits that are not out, but cooling down at one host at least."""
    out: int = 0
    spent: Spent = msgspec.field(default_factory=Spent)


class LaneState(msgspec.Struct, kw_only=True):
    """The tasks of a host that wait for exits of one pool, as reported to users."""

    host: str
    pool: str
    waiting: int = 0
    tier_pool: str = ""
    """The pool whose exits are currently used."""
    is_site_blocking: bool = False
    starved_s: float = 0.0
    """For how long no exit could be used."""
