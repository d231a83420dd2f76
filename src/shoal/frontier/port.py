"""The frontier port: how work gets to workers and back, split by who calls.

    WorkIntake    those who bring work: start, add, remember, collect
    WorkSource    workers: lease, renew, finish, exchange, robots, beat; they bring work as well
    Upkeep        those who look after a crawl: control, release, retry_dead, purge_dead, forget
    Queries       those who ask: crawls, find, dead, leased, hosts, chains, workers
    HasNotes      coordinators, and whoever leaves notes for them
    HasExits      those who bring exits and accounts, and those who ask how they are doing
    Overview      everybody, and so a base of all the others: stats

A backend is a `Frontier`, which is all of them. A caller names in its signature the part it needs,
or a pair of parts such as `IntakeAndUpkeep`. What not every backend can do is in `Capabilities`.

A task's life, as every backend keeps it:

    add ─▶ WAITING ─lease─▶ LEASED ─finish─▶ DONE | DEAD | DROPPED
              ▲                │
              ├── returned ────┤            given back unsent or on drain: to the front
              ├── lost ────────┤            the worker died: lease expired, or was released
              └── DELAYED ◀── retry         until its backoff is over, then behind what waits

Three rules hold on every backend, and `tests/contract` checks them:

1. `finish` is the only way out of LEASED for a living worker, and it is atomic: follow-ups are
   added, counters moved and the lease released in one step, or nothing is.
2. A call with a token that is no longer the task's changes nothing and says so.
3. `lease` hands out a task only if its host may be hit at that moment, and reserves the host's
   next turn in the same step.

At all times: added = waiting + delayed + leased + done + dead + dropped.

A host's room is how many requests may be in flight there. A plain lease is the permission to send
one, and takes one of the room until it is finished. Who wants more of a host than it has room for
gets a share of the room instead, and leases ahead of it that are shared: these take no room. One
may be sent while the worker has less in flight at the host than its share (`Grant.shares`). Plain
leases and shares together are never more than the room. With each question a worker says what it
has in flight (`Holding`), and others may get the rest at once: so while the question is open, and
after it has failed, it has no more in flight than it said, until another is answered.

Tasks with a pool (`Task.proxy_pool`) wait apart from the host's others, in a lane for each host and
pool: where no exit of the pool can be used, those wait and no others do. One is handed out only
when its host may be hit, an exit of its pool may be used, and that exit at that host: all three are
reserved in the one step. Its lease names the exit (`Lease.lent`), takes room at the host, and is
never shared. What decides is in core/exit_policy.py. Exits are known to all crawls of a frontier,
and outlive them; the frontier never knows their addresses.

Tasks with a session (`Task.session`) wait in lanes as well: the accounts of a group are lent as the
exits of a pool are, by the name `@shop`. A lease names the identity (`Lease.identity`) with its
cookies, which an outcome changes, and if the group goes by a pool, the exit that the account is
bound to (`Lease.lent`). One request of an account is in flight at a time, or as many as its group
allows: then all from one worker. What decides is in core/identity_policy.py.

Tasks of one chain (`Task.chain`) go one after the other, for the whole fleet. The next one is
handed out only when the one before has ended: done, dead or dropped. A retry, a lost worker or a
task given back keep the chain where it is; a dead step does not stop it. Of those that wait, the
one that was added first is next, whatever its host and priority, also if it was dead and is tried
again. Only the target of a redirect comes before all others: it is the same step. Without
`Capabilities.chains_across_hosts`, that is on a cluster, all this holds among the tasks of one
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
"""Of some fingerprints, those of pages that are done and led nowhere."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend can do that not every backend can. The contract suite goes by it."""

    strict_priorities: bool
    """Of the tasks of a host, the one with the highest priority is next, whatever came before."""
    chains_across_hosts: bool
    """Tasks of one chain go one after the other even if their hosts differ."""
    exact_waits: bool
    """`Grant.wait_s` takes every host into account, also beside leases. Else it is exact only in
    a grant without leases."""
    exact_max_pages: bool
    """`max_pages` holds at any moment. Else workers who ask at the same time may overstep it, and
    a lease that expires makes room only for the next who asks."""
    exact_rate: bool
    """`Stats.pages_per_s` is measured for the crawl as a whole, not added up from its parts."""
    bounded_seen: bool
    """Known URLs can be kept in a Bloom filter, or for a while only: `Rules.seen`, `seen_for`.
    Else `start` raises ConfigError for rules that ask for it."""
    keeps_ended: bool
    """What a task was is kept when it is done or dropped: `find` and `find_others` tell it."""
    whole_backlog: bool
    """All that waits is at hand. Else only what is next is: a retry goes behind that and not behind
    all, one grant may have less of a host than waits, `find` says of some tasks that they wait or
    are done, and `find_others` does not name them."""


class Held(msgspec.Struct, frozen=True):
    """An account that is kept from everybody: as a lease would have it."""

    identity: LeasedIdentity
    lent: Lent | None = None
    until: float = 0.0
    """When it ends by itself, by the clock of the exits. It is the token of the hold, too: whoever
    holds the account after that does so until later."""


class Overview(Protocol):
    """For everybody: how a crawl stands.

    Every method of a frontier raises StorageBusy if trying again may help (nothing has changed
    then) and StorageFailed if not. A crawl that does not exist is UnknownCrawl, except to `start`,
    `add`, `remember` and `forget`.
    """

    @abstractmethod
    async def stats(self, crawl: str) -> Stats:
        """The crawl's state, its rules and its counters."""


class WorkIntake(Overview, Protocol):
    """For those who bring work."""

    @abstractmethod
    async def start(self, crawl: str, rules: Rules, *, again: bool = True) -> Stats:
        """Make the crawl, or join it. Its rules become these. A finished one is running again,
        unsealed; a cancelled one is a ConfigError. Without `again`, one that is over stays so."""

    @abstractmethod
    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        """Queue tasks that were never seen, and give those that are dead a fresh start if their
        entries ask for it (`Entry.retry`). A crawl nobody started is made, as NEW, and keeps them;
        a finished one is running again."""

    @abstractmethod
    async def remember(self, crawl: str, fingerprints: Sequence[bytes]) -> None:
        """Know these as done elsewhere: `add` takes them for duplicates. They are no tasks of the
        crawl and are counted nowhere. A crawl nobody started is made, as by `add`."""

    async def collect(self, crawl: str, read: Callable[[bytes], Entry]) -> Added:
        """Queue what others have left in the crawl's inbox. What `read` rejects, with a BadUrl, is
        put aside with the reason. A backend that others cannot write to has no inbox."""
        return Added()


class WorkSource(WorkIntake, Protocol):
    """For workers. They bring work as well: seeds from the inbox, and what a page has of links
    beyond what one `finish` takes (see parts.py)."""

    @abstractmethod
    async def lease(self, crawl: str, ask: Ask) -> Grant:
        """Tasks whose hosts may be hit now, at most `ask.room`. Takes back expired leases first,
        and divides the room of shared hosts anew. Of a host of which the worker has nothing and
        gets nothing, it has no share any more.

        A task that two workers died with is a suspect: it is handed out only where there is
        nothing else to do, and alone, to a worker that holds nothing. One death proves nothing;
        after the second, a page that kills its worker takes no other task with it."""

    @abstractmethod
    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        """Prolong leases, and the shares that those of them which are shared are sent by, unless
        these are void. Returns those that are no longer ours, or whose account is not: where a
        lease has expired, another crawl may have it."""

    @abstractmethod
    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        """End tries, atomically. Returns the leases that were no longer ours: those did nothing."""

    @abstractmethod
    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        """`finish`, then `lease`, in one round trip: what a busy worker does all the time. If it
        fails, either or both may have been done."""

    @abstractmethod
    async def robots(self, crawl: str, host: str) -> Robots | None:
        """The robots.txt that some worker stored with `finish`."""

    @abstractmethod
    async def turn(self, crawl: str, host: str, lent: Lent | None) -> float:
        """Reserve one more turn at a host, for a request of a login that goes by this exit. 0: it
        is to be sent now, within `policy.SEND_SLACK_S`; else nothing is reserved, and asking again
        makes sense after so many seconds. The host's room is not looked at: the lease that the
        login is for has its place in it."""

    @abstractmethod
    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        """Say that a worker is alive. True: there is something in the inbox to `collect`."""


class Upkeep(Overview, Protocol):
    """For those who look after a crawl."""

    @abstractmethod
    async def control(self, crawl: str, action: Control) -> CrawlState:
        """Seal, pause, resume or cancel."""

    @abstractmethod
    async def forget(self, crawl: str) -> None:
        """Delete the crawl and all it knows. Not an error if there is none."""

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
        """Give dead tasks a fresh start. Returns how many; with `dry_run` nothing else happens. Of
        many, some at a time: if it fails half-way, those that it got to are retried. What dies
        meanwhile may be left out."""

    @abstractmethod
    async def purge_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        """Drop dead tasks. Returns how many, as `retry_dead` does."""


class Queries(Overview, Protocol):
    """For those who ask about crawls. Nothing here changes anything."""

    @abstractmethod
    async def crawls(self) -> list[Stats]:
        """Every crawl here, the newest first."""

    @abstractmethod
    async def find(self, crawl: str, entry: Entry) -> Record | None:
        """What the frontier knows of one URL, given as the entry it would be."""

    @abstractmethod
    async def find_others(
        self, crawl: str, site: str, is_wanted: Callable[[str], bool], limit: int
    ) -> list[Record]:
        """At most `limit` tasks of a host whose URL is wanted, and that are more than its GET: of
        another method, with a body or headers of their own, copies. Those that are done or dropped
        are among them only where the backend keeps what they were. Every task of the host is looked
        at, and one that moves meanwhile may be missed: for people who ask, not for workers."""

    @abstractmethod
    async def dead(
        self,
        crawl: str,
        limit: int,
        after: DeadPlace | None = None,
        which: DeadFilter = ALL_DEAD,
    ) -> list[Record]:
        """Dead tasks, those that died last first; page on with the place of the last one."""

    @abstractmethod
    async def leased(self, crawl: str, limit: int) -> list[Leased]:
        """What is in the hands of workers now, those first whose leases expire first."""

    @abstractmethod
    async def hosts(
        self, crawl: str, limit: int, order: HostOrder = HostOrder.BUSIEST
    ) -> list[Host]:
        """The first hosts in an order: most work left, longest latency, most failures. Hosts that
        never answered are not among the slowest, nor those that never failed among the failing."""

    @abstractmethod
    async def traps(self, crawl: str, limit: int) -> list[Trap]:
        """Of what most links were kept out by the limits for hosts and for shapes of addresses."""

    @abstractmethod
    async def chains(self, crawl: str, limit: int) -> list[Chain]:
        """Chains of which something is left, the longest first. Where there are more than `limit`,
        a backend may tell of any of them."""

    @abstractmethod
    async def workers(self, crawl: str) -> list[Pulse]:
        """The workers that were heard of lately, by name."""


class HasNotes(Overview, Protocol):
    """For coordinators, and for those who leave notes beside the crawls."""

    @property
    @abstractmethod
    def notes(self) -> Notes:
        """Notes and leadership, shared by all who use this frontier."""


class HasExits(Overview, Protocol):
    """For those who bring exits, and those who ask how they are doing."""

    @abstractmethod
    async def put_pool(self, rules: PoolRules, exits: Sequence[ExitEntry]) -> None:
        """Make the pool, or change it: its rules become these, its exits those that are listed.
        What is known of an exit stays known, also while it is not listed."""

    @abstractmethod
    async def pools(self) -> list[PoolState]:
        """All pools here, by name."""

    @abstractmethod
    async def exits(self, pool: str) -> list[Exit]:
        """The exits of a pool that are listed, by id. None if there is no such pool."""

    @abstractmethod
    async def accounts(self, group: str, *, jars: bool = False) -> list[Account]:
        """The accounts of a group that are listed, by name. None if there is no such group. Their
        cookies are much to read: they are told if they are asked for."""

    @abstractmethod
    async def hold(self, identity: str, host: str | None, seconds: float) -> Held | None:
        """Keep an account from everybody for so long, to log it in at a host by hand, or, without
        one, to do something that needs no exit. None: it is in use, or there is no such account, or
        no exit that it could go by. A rest or a ban is no reason."""

    @abstractmethod
    async def hold_on(self, held: Held, seconds: float) -> Held | None:
        """Hold an account for so long from now. None: that hold is over, and nothing changes."""

    @abstractmethod
    async def let_go(self, held: Held, report: IdentityReport) -> bool:
        """End a hold: what it found is heeded as if a worker had found it. `OUT`: the account
        begins anew, without a rest or a ban. False: that hold is over, and nothing changes."""

    @abstractmethod
    async def lanes(self, crawl: str, limit: int) -> list[LaneState]:
        """The lanes of a crawl in which tasks wait, those with the most first."""


class IntakeAndUpkeep(WorkIntake, Upkeep, Protocol):
    """For those who run a crawl: they bring its seeds, seal it, and see it to its end."""


class IntakeAndNotes(WorkIntake, HasNotes, Protocol):
    """For those who bring work, and note how far they have come."""


class UpkeepAndNotes(Upkeep, HasNotes, Protocol):
    """For those who look after the crawls that coordinators began."""


class QueriesAndNotes(Queries, HasNotes, HasExits, Protocol):
    """For those who ask about crawls, the schedules that began them, and the exits they go by."""


class Frontier(WorkSource, Upkeep, Queries, HasNotes, HasExits):
    """The shared queue of all crawls at one address: what a backend implements."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this backend can do that not every backend can."""

    async def check(self) -> None:
        """Look whether all that it needs lets us in, before work begins. Raises ConfigError, and
        StorageBusy if something is away."""
        await self.notes.leader()

    async def repair(self, crawl: str, ended: Ended | None) -> Repaired:
        """Write off tasks that a carrier has lost, and forget enough for them to be found again.
        Nobody may be at work. `ended` is None if nobody knows. Raises ConfigError where no tasks
        travel."""
        raise ConfigError(f"no broker carries tasks of crawl '{crawl}': there is nothing to repair")

    @abstractmethod
    async def close(self) -> None:
        """Let go of the connection. Nothing is called after it."""
