"""The frontier port: how work gets to workers and back, split by kind of caller.

    WorkIntake    callers that bring work: start, add, remember, collect
    WorkSource    workers: lease, renew, finish, exchange, robots, beat; they bring work as well
    Upkeep        callers that look after a crawl: control, release, retry_dead, purge_dead, forget
    Queries       callers that read: crawls, find, dead, leased, hosts, chains, workers
    HasNotes      coordinators, and programs that leave notes for them
    HasExits      callers that bring exits and accounts, and those that read their state
    Overview      every caller, and so a base of all the others: stats

A backend is a `Frontier`, which has all parts. A caller names in its signature the part it needs,
or a pair of parts such as `IntakeAndUpkeep`. `Capabilities` lists what not every backend can do.

The life of a task, on every backend:

    add ─▶ WAITING ─lease─▶ LEASED ─finish─▶ DONE | DEAD | DROPPED
              ▲                │
              ├── returned ────┤            given back unsent, or in a drain: to the front
              ├── lost ────────┤            the worker died: lease expired, or was released
              └── DELAYED ◀── retry         until its backoff is over, then behind all that waits

Three rules hold on every backend, and `tests/contract` checks them:

1. `finish` is the only way out of LEASED for a living worker, and it is atomic: follow-ups are
   added, counters moved and the lease released in one step, or nothing is.
2. A call with a token that is no longer the task's changes nothing, and reports that.
3. `lease` hands out a task only if its host may be hit at that moment, and reserves the host's
   next turn in the same step.

At all times: added = waiting + delayed + leased + done + dead + dropped.

A host's room is the number of requests that may be in flight there. A plain lease is the permission
to send one request, and takes one place of the room until it is finished. A worker that wants more
of a host than its room allows gets a share of the room instead, and shared leases ahead of it.
Shared leases take no room: one may be sent while the worker has less in flight at the host than its
share (`Grant.shares`). Plain leases and shares together never exceed the room. With each `Ask`, a
worker says what it has in flight (`Holding`), and other workers may get the rest at once. So until
that ask is answered, or, if it fails, until a later one is, the worker must not have more in flight
than it said.

Tasks with a pool (`Task.proxy_pool`) wait apart from the host's other tasks, in one lane per host
and pool: if no exit of the pool can be used, only those tasks wait. A task is handed out only when
its host may be hit, an exit of its pool may be used, and that exit may be used at that host: all
three are reserved in the same step. Its lease names the exit (`Lease.lent`), takes room at the
host, and is never shared. core/exit_policy.py has the rules. Exits are known to all crawls of a
frontier, and outlive them; the frontier never knows their addresses.

Tasks with a session (`Task.session`) wait in lanes as well: the accounts of a group are lent like
the exits of a pool, by the name `@shop`. A lease names the identity (`Lease.identity`) with its
cookies, which an outcome changes. If the group uses a pool, the lease also names the exit that the
account is bound to (`Lease.lent`). One request of an account is in flight at a time, or as many as
its group allows: then all from one worker. core/identity_policy.py has the rules.

Tasks of one chain (`Task.chain`) go one after the other, for the whole fleet. The next one is
handed out only when the one before has ended: done, dead or dropped. The chain does not move on
when a task is retried, given back, or lost with its worker; a dead task does not stop it. The next
task is the one that was added first, whatever its host and priority, also if it was dead and is
retried. Only the target of a redirect comes before all others: it is the same step. Without
`Capabilities.chains_across_hosts`, that is on a cluster, all this holds only among the tasks of one
host: so a chain should keep to one host there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

import msgspec

from shoal.config import Rules
from shoal.core.exits import Exit, ExitEntry, LaneState, Lent, PoolRules, PoolState
from shoal.core.identities import Account, IdentityReport, LeasedIdentity
from shoal.core.records import Robots
from shoal.core.shapes import Trap
from shoal.errors import ConfigError
from shoal.frontier.board import Notes
from shoal.frontier.values import (
    ALL_DEAD,
    Added,
    Ask,
    Chain,
    Control,
    CrawlState,
    DeadFilter,
    DeadPlace,
    Entry,
    Grant,
    Host,
    HostOrder,
    Lease,
    Leased,
    Outcome,
    Pulse,
    Record,
    Repaired,
    Stats,
)

Ended = Callable[[Sequence[bytes]], Awaitable[Collection[bytes]]]
"""Given fingerprints, returns those of pages that are done and led to no other pages."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend can do that not every backend can. The contract suite tests accordingly."""

    strict_priorities: bool
    """The next task of a host is the one with the highest priority, whenever it was added."""
    chains_across_hosts: bool
    """Tasks of one chain go one after the other even if their hosts differ."""
    exact_waits: bool
    """`Grant.wait_s` takes every host into account, also in a grant with leases. Otherwise it is
    exact only in a grant without leases."""
    exact_max_pages: bool
    """`max_pages` holds at any moment. Otherwise workers that ask at the same time may exceed it,
    and a lease that expires makes room only for the next worker that asks."""
    exact_rate: bool
    """`Stats.pages_per_s` is measured for the crawl as a whole, not added up from its parts."""
    bounded_seen: bool
    """Known URLs can be kept in a Bloom filter, or for a limited time: `Rules.seen`, `seen_for`.
    Otherwise `start` raises ConfigError for rules that ask for it."""
    keeps_ended: bool
    """Tasks are kept when they are done or dropped: `find` and `find_others` return them."""
    whole_backlog: bool
    """All waiting tasks are in the frontier's own store. Otherwise only the next ones are: a retry
    goes behind those and not behind all that waits, a grant may have less of a host than waits,
    `find` says of some tasks that they wait or are done, and `find_others` leaves these out."""


class Held(msgspec.Struct, frozen=True):
    """An account that is held by hand, so that no worker gets it. Its fields are those of a
    lease."""

    identity: LeasedIdentity
    lent: Lent | None = None
    until: float = 0.0
    """When the hold ends by itself, by the clock of the exits. This is also the token of the hold:
    a hold that begins after that moment ends later."""


class Overview(Protocol):
    """For every caller: the state of a crawl.

    Every method of a frontier raises StorageBusy if trying again may help (then nothing has
    changed), and StorageFailed if not. For a crawl that does not exist, all but `start`, `add`,
    `remember` and `forget` raise UnknownCrawl.
    """

    @abstractmethod
    async def stats(self, crawl: str) -> Stats:
        """The crawl's state, its rules and its counters."""


class WorkIntake(Overview, Protocol):
    """For callers that bring work."""

    @abstractmethod
    async def start(self, crawl: str, rules: Rules, *, again: bool = True) -> Stats:
        """Create the crawl, or join it, and replace its rules by these. A finished crawl runs
        again, unsealed; for a cancelled one, ConfigError is raised. Without `again`, a crawl that
        is over stays over."""

    @abstractmethod
    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        """Queue tasks that were never seen, and retry dead ones if their entries ask for it
        (`Entry.retry`). A crawl that does not exist is created as NEW, and keeps the tasks; a
        finished one runs again."""

    @abstractmethod
    async def remember(self, crawl: str, fingerprints: Sequence[bytes]) -> None:
        """Remember these fingerprints as done elsewhere: `add` takes them for duplicates. They are
        not tasks of the crawl, and no counter includes them. A crawl that does not exist is
        created, as by `add`."""

    async def collect(self, crawl: str, read: Callable[[bytes], Entry]) -> Added:
        """Queue the seeds that other programs have left in the crawl's inbox. Seeds that `read`
        rejects, by raising BadUrl, are put aside with the reason. A backend to which other programs
        cannot write has no inbox."""
        return Added()


class WorkSource(WorkIntake, Protocol):
    """For workers. They bring work as well: seeds from the inbox, and the links of a page that are
    too many for one `finish` (see parts.py)."""

    @abstractmethod
    async def lease(self, crawl: str, ask: Ask) -> Grant:
        """Hand out tasks whose hosts may be hit now, at most `ask.room`. First takes back expired
        leases, and divides the room of shared hosts anew. A worker that has nothing of a host, and
        gets nothing, loses its share of it.

        A task that two workers died with is a suspect: it is handed out only when there is nothing
        else to do, and alone, to a worker that holds nothing. One death proves nothing; after the
        second, a page that kills its worker takes no other task with it."""

    @abstractmethod
    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        """Prolong leases, and the shares by which shared ones are sent, unless these are void.
        Returns the leases that are no longer ours, and those whose account is no longer ours: after
        a lease has expired, another crawl may have the account."""

    @abstractmethod
    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        """End tries, atomically. Returns the leases that were no longer ours: their outcomes had no
        effect."""

    @abstractmethod
    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        """`finish`, then `lease`, in one round trip: a busy worker calls this all the time. If it
        fails, either or both may have been done."""

    @abstractmethod
    async def robots(self, crawl: str, host: str) -> Robots | None:
        """The robots.txt of a host, as a worker stored it with `finish`."""

    @abstractmethod
    async def turn(self, crawl: str, host: str, lent: Lent | None) -> float:
        """Reserve one more turn at a host, for a request of a login that leaves by this exit.
        Returns 0 if the request is to be sent now, within `policy.SEND_SLACK_S`. Otherwise nothing
        is reserved, and the result is the seconds after which asking again makes sense. The host's
        room does not matter: the lease that the login is for has its place in it."""

    @abstractmethod
    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        """Report that a worker is alive. Returns whether the inbox has something to `collect`."""


class Upkeep(Overview, Protocol):
    """For callers that look after a crawl."""

    @abstractmethod
    async def control(self, crawl: str, action: Control) -> CrawlState:
        """Seal, pause, resume or cancel."""

    @abstractmethod
    async def forget(self, crawl: str) -> None:
        """Delete the crawl and all its data. Not an error if it does not exist."""

    @abstractmethod
    async def holders(self, crawl: str) -> list[str]:
        """The workers that hold leases, or shares of hosts that are not void, by name."""

    @abstractmethod
    async def release(self, crawl: str, worker: str) -> int:
        """Take back all that a dead worker held, leases and shares, without waiting for them to
        expire. Returns how many leases."""

    @abstractmethod
    async def retry_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        """Give dead tasks a fresh start. Returns how many; with `dry_run` it only counts. Many are
        retried in batches: if it fails half-way, the first ones are retried. Tasks that die
        meanwhile may be left out."""

    @abstractmethod
    async def purge_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        """Drop dead tasks. Returns how many; `dry_run` and failures are as in `retry_dead`."""


class Queries(Overview, Protocol):
    """For callers that ask about crawls. Nothing here changes anything."""

    @abstractmethod
    async def crawls(self) -> list[Stats]:
        """All crawls of this frontier, the newest first."""

    @abstractmethod
    async def find(self, crawl: str, entry: Entry) -> Record | None:
        """The record of one URL, given as the entry that it would be. None: it was never seen."""

    @abstractmethod
    async def find_others(
        self, crawl: str, site: str, is_wanted: Callable[[str], bool], limit: int
    ) -> list[Record]:
        """At most `limit` tasks of a host whose URL is wanted, other than the plain GET of that
        URL: tasks with another method, a body or headers of their own, and copies. Tasks that are
        done or dropped are included only if the backend keeps them (`Capabilities.keeps_ended`).
        Looks at every task of the host, and may miss one that moves meanwhile: for people who ask,
        not for workers."""

    @abstractmethod
    async def dead(
        self,
        crawl: str,
        limit: int,
        after: DeadPlace | None = None,
        which: DeadFilter = ALL_DEAD,
    ) -> list[Record]:
        """Dead tasks, those that died last first. For the next page, pass the place of the last
        one as `after`."""

    @abstractmethod
    async def leased(self, crawl: str, limit: int) -> list[Leased]:
        """The tasks that are leased now, in the order in which their leases expire."""

    @abstractmethod
    async def hosts(
        self, crawl: str, limit: int, order: HostOrder = HostOrder.BUSIEST
    ) -> list[Host]:
        """The first hosts in an order: most work left, longest latency, most failures. Hosts that
        never answered are not among the slowest, nor those that never failed among the failing.
        While nothing changes, a longer list has every host of a shorter one."""

    @abstractmethod
    async def traps(self, crawl: str, limit: int) -> list[Trap]:
        """The hosts and shapes of addresses whose limits kept the most links out."""

    @abstractmethod
    async def chains(self, crawl: str, limit: int) -> list[Chain]:
        """Chains with tasks that have not ended, the longest first. If there are more than `limit`,
        a backend may return any of them."""

    @abstractmethod
    async def workers(self, crawl: str) -> list[Pulse]:
        """The workers that reported lately, by name."""


class HasNotes(Overview, Protocol):
    """For coordinators, and for callers that leave notes beside the crawls."""

    @property
    @abstractmethod
    def notes(self) -> Notes:
        """Notes and leadership, shared by all programs that use this frontier."""


class HasExits(Overview, Protocol):
    """For callers that bring exits and accounts, and those that ask for their state."""

    @abstractmethod
    async def put_pool(self, rules: PoolRules, exits: Sequence[ExitEntry]) -> None:
        """Create or change a pool: its rules become these, and its exits become those listed here.
        What is known about an exit is kept, also while it is not listed."""

    @abstractmethod
    async def pools(self) -> list[PoolState]:
        """All pools of this frontier, by name."""

    @abstractmethod
    async def exits(self, pool: str) -> list[Exit]:
        """The exits of a pool that are listed, by id. Empty if there is no such pool."""

    @abstractmethod
    async def accounts(self, group: str, *, jars: bool = False) -> list[Account]:
        """The accounts of a group that are listed, by name. Empty if there is no such group. Their
        cookies are read only with `jars`, because they are large."""

    @abstractmethod
    async def hold(self, identity: str, host: str | None, seconds: float) -> Held | None:
        """Hold an account for some seconds, so that no worker gets it: to log it in at a host by
        hand, or, without a host, to do something that needs no exit. None: the account is in use or
        does not exist, or there is no exit for it. Accounts that rest or are banned can be held."""

    @abstractmethod
    async def hold_on(self, held: Held, seconds: float) -> Held | None:
        """Prolong a hold until `seconds` from now. None: the hold is over, and nothing changes."""

    @abstractmethod
    async def let_go(self, held: Held, report: IdentityReport) -> bool:
        """End a hold. The report has the effect that it would have from a worker, but `OUT` lets
        the account begin anew, without a rest or a ban. False: the hold is over, and nothing
        changes."""

    @abstractmethod
    async def lanes(self, crawl: str, limit: int) -> list[LaneState]:
        """The lanes of a crawl in which tasks wait, those with the most first."""


class IntakeAndUpkeep(WorkIntake, Upkeep, Protocol):
    """For callers that run a crawl: they bring its seeds, seal it, and follow it to its end."""


class IntakeAndNotes(WorkIntake, HasNotes, Protocol):
    """For callers that bring work, and note their progress."""


class UpkeepAndNotes(Upkeep, HasNotes, Protocol):
    """For callers that look after the crawls that coordinators began."""


class QueriesAndNotes(Queries, HasNotes, HasExits, Protocol):
    """For callers that ask about crawls, the schedules that began them, and the exits they use."""


class Frontier(WorkSource, Upkeep, Queries, HasNotes, HasExits):
    """The shared queue of all crawls at one address: what a backend implements."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this backend can do that not every backend can do."""

    async def check(self) -> None:
        """Look whether all that it needs lets us in, before work begins. Raises ConfigError, and
        StorageBusy if something is away."""
        await self.notes.leader()

    async def repair(self, crawl: str, ended: Ended | None) -> Repaired:
        """Drop the tasks that the carrier has lost, and forget enough fingerprints for them to be
        found again. No worker may be at work meanwhile. `ended` is None if that is not known.
        Raises ConfigError if the frontier has no carrier."""
        raise ConfigError(f"no broker carries tasks of crawl '{crawl}': there is nothing to repair")

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. No other method may be called afterwards."""
