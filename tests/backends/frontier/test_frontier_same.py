"""SQLite and Redis, one server or a cluster, step by step through the same random lives: what one
does, the other does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from shoal.config import Rules
from shoal.errors import ShoalError
from shoal.frontier.port import Frontier
from shoal.frontier.values import (
    Ask,
    Control,
    DeadFilter,
    Entry,
    Grant,
    Holding,
    Host,
    HostOrder,
    Lease,
    Outcome,
    Record,
    Stats,
)
from support.frontier_lives import (
    ENTRIES,
    FAILURE,
    MANY,
    STEPS_S,
    WORKERS,
    rounded,
    rules_of_many,
    rules_of_one,
    some_ends,
    some_holdings,
    some_keys,
    told,
)
from support.frontiers import CRAWL, NOTHING, Backend, SqliteBackend, outcome
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.state_machines import lives

T = TypeVar("T")
Pair = tuple[Lease, Lease]
MOST_FAILURES = 150
"""Redis counts up to 255 tries of a task."""
limits = st.integers(1, 4)
some_pairs = st.lists(st.integers(0, 8), min_size=1, max_size=4)


async def answer_of(call: Awaitable[T]) -> tuple[T | None, type[ShoalError] | None]:
    """The answer, or the kind of error."""
    try:
        return await call, None
    except ShoalError as error:
        return None, type(error)


async def hosts(frontier: Frontier, order: HostOrder) -> list[Host]:
    found = await frontier.hosts(CRAWL, 9, order)
    if order is HostOrder.SLOWEST:  # Latencies that are all but equal come in any order.
        found.sort(key=lambda host: host.host)
    return found


async def dead(frontier: Frontier) -> list[Record]:
    """In the same order: each has one of its own."""
    return sorted(await frontier.dead(CRAWL, 100), key=lambda record: record.fingerprint)


def keys_of(leases: Sequence[Lease]) -> list[bytes]:
    """In the same order: a cluster asks one shard after the other."""
    return sorted(lease.fingerprint for lease in leases)


def full_hosts(leases: Sequence[Lease]) -> set[str]:
    """The hosts without room for more. A cluster may serve one twice: the second time tells."""
    return {lease.task.site for lease in leases if lease.crowded}


def comparable(stats: Stats) -> Stats:
    """Without the rate. It is measured from samples that are taken at the end of a step, and an
    exchange is one step on SQLite and two on Redis: so they may have taken them at other counts."""
    return replace(stats, pages_per_s=0.0)


def find(frontier: Frontier, entry: Entry) -> Awaitable[Record | None]:
    return frontier.find(CRAWL, entry)


class SameMachine(RuleBasedStateMachine):
    """Drives both, and compares all they say."""

    servers: ClassVar[RedisServer | RedisCluster]
    shares = True

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.servers.flush()
        self.backends: list[Backend] = [
            SqliteBackend(Path(self.folder.name) / "frontier.db"),
            RedisBackend(self.servers.url),
        ]
        self.both_can = self.backends[1].frontier.capabilities
        self.pairs: list[Pair] = []
        self.has_one_host = True
        self.failed = 0

    def teardown(self) -> None:
        for backend in self.backends:
            self.run(backend.check())
            self.run(backend.close())
        self.runner.close()
        self.folder.cleanup()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def both(self, call: Callable[[Frontier], Awaitable[T]]) -> list[T]:
        """Ask both. If one raises, so must the other: then there is nothing else to compare."""
        answers = [self.run(answer_of(call(backend.frontier))) for backend in self.backends]
        values = [value for value, _ in answers]
        errors = [error for _, error in answers]
        assert errors[0] == errors[1]
        return [] if errors[0] else values  # type: ignore[return-value]

    def same(self, call: Callable[[Frontier], Awaitable[Any]]) -> None:
        """Ask both for something that can be compared as it is."""
        answers = [msgspec.to_builtins(a, builtin_types=(bytes,)) for a in self.both(call)]
        assert answers[1:] == rounded(answers[:1])

    @initialize(data=st.data(), has_one_host=st.booleans(), sealed=st.booleans())
    def begin(self, data: st.DataObject, has_one_host: bool, sealed: bool) -> None:
        self.has_one_host = has_one_host
        self.start(data)
        self.add(ENTRIES[:3])
        if sealed:
            self.control(Control.SEAL)

    def within(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those of the hosts that this life has."""
        found = [each for each in entries if not self.has_one_host or each in ENTRIES[:5]]
        return list(map(self.chained, found))

    def chained(self, entry: Entry) -> Entry:
        """The entry, of the chain that it has here: of one per host, if need be."""
        if self.both_can.chains_across_hosts or entry.task.chain is None:
            return entry
        chain = f"{entry.task.chain} on {entry.task.site}"
        return Entry(entry.fingerprint, replace(entry.task, chain=chain))

    def wait_s(self, grant: Grant) -> float | None:
        """When to ask again, as far as both must say the same."""
        return grant.wait_s if self.both_can.exact_waits or not grant.leases else None

    async def stats(self, frontier: Frontier) -> Stats:
        return comparable(await frontier.stats(CRAWL))

    async def started(self, frontier: Frontier, rules: Rules) -> Stats:
        return comparable(await frontier.start(CRAWL, rules))

    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        """Again too: with other rules."""
        may_limit = self.has_one_host and self.both_can.exact_max_pages
        rules = self.fitting(data.draw(rules_of_one if may_limit else rules_of_many))
        self.same(partial(self.started, rules=rules))

    def fitting(self, rules: Rules) -> Rules:
        """Rules under which both must do the same."""
        return rules

    @rule(data=st.data())
    def start_over(self, data: st.DataObject) -> None:
        self.both(lambda frontier: frontier.forget(CRAWL))
        self.start(data)
        self.add(ENTRIES[:5])

    @rule(entries=st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=6))
    def add(self, entries: list[Entry]) -> None:
        wanted = self.within(entries)
        self.same(lambda frontier: frontier.add(CRAWL, wanted))

    @rule(worker=st.sampled_from(WORKERS), limit=limits, said=some_holdings)
    def lease(self, worker: str, limit: int, said: dict[str, Holding]) -> None:
        self.leased(worker, limit, said)

    def leased(self, worker: str, limit: int, said: Mapping[str, Holding] = NOTHING) -> list[Pair]:
        ask = Ask(worker, self.limited(limit), self.true(said))
        return self.paired(self.both(lambda frontier: frontier.lease(CRAWL, ask)))

    def true(self, said: Mapping[str, Holding]) -> dict[str, Holding]:
        """What a worker says of its shares, if there can be any."""
        return dict(said) if self.shares else {}

    def limited(self, limit: int) -> int:
        return limit if self.has_one_host else MANY

    def paired(self, grants: list[Grant]) -> list[Pair]:
        """The leases of both, which must be the same."""
        sqlite, redis = grants
        assert redis.state is sqlite.state
        assert redis.shares == sqlite.shares
        assert rounded(self.wait_s(redis)) == self.wait_s(sqlite)
        mine, theirs = (
            sorted(grant.leases, key=lambda lease: lease.fingerprint) for grant in (sqlite, redis)
        )
        for one, other in zip(mine, theirs, strict=True):
            assert (other.fingerprint, other.task) == (one.fingerprint, one.task)
            assert (other.paced, other.alone) == (one.paced, one.alone)
            assert other.shared == one.shared
            assert other.robots_at == rounded(one.robots_at)
        assert full_hosts(theirs) == full_hosts(mine)
        pairs = list(zip(mine, theirs, strict=True))
        self.pairs += pairs
        self.advance(STEPS_S[0])  # No page is read in the very moment of its lease.
        return pairs

    @rule(worker=st.sampled_from(WORKERS), ends=some_ends)
    def lease_and_finish(self, worker: str, ends: list[dict[str, Any]]) -> None:
        self.end(self.leased(worker, len(ends)), ends)

    @precondition(lambda self: self.pairs)
    @rule(which=some_pairs, ends=some_ends)
    def finish(self, which: list[int], ends: list[dict[str, Any]]) -> None:
        """Most of what is chosen is stale."""
        self.end(self.chosen(which), ends)

    def chosen(self, which: list[int]) -> list[Pair]:
        return [self.pairs[-1 - number % len(self.pairs)] for number in which if self.pairs]

    def end(self, pairs: list[Pair], ends: list[dict[str, Any]]) -> None:
        sqlite, redis = (
            self.run(backend.frontier.finish(CRAWL, tries))
            for backend, tries in zip(self.backends, self.tries_of(pairs, ends), strict=True)
        )
        assert keys_of(redis) == keys_of(sqlite)

    def tries_of(self, pairs: list[Pair], ends: list[dict[str, Any]]) -> list[list[Outcome]]:
        """The same ends, of the leases of each."""
        ended = list(zip(pairs, ends, strict=False))
        return [
            [
                outcome(
                    pair[number],
                    **end | {"follow_ups": self.found(pair[number], end.get("follow_ups", ()))},
                )
                for pair, end in ended
            ]
            for number in range(len(self.backends))
        ]

    def found(self, lease: Lease, entries: Sequence[Entry]) -> list[Entry]:
        """Those that a page may lead to."""
        return self.within(entries)

    @rule(
        worker=st.sampled_from(WORKERS),
        which=some_pairs,
        ends=some_ends,
        limit=limits,
        said=some_holdings,
    )
    def exchange(
        self,
        worker: str,
        which: list[int],
        ends: list[dict[str, Any]],
        limit: int,
        said: dict[str, Holding],
    ) -> None:
        """What a busy worker does all the time."""
        ask = Ask(worker, self.limited(limit), self.true(said))
        (sqlite_stale, sqlite), (redis_stale, redis) = (
            self.run(backend.frontier.exchange(CRAWL, tries, ask))
            for backend, tries in zip(
                self.backends, self.tries_of(self.chosen(which), ends), strict=True
            )
        )
        assert keys_of(redis_stale) == keys_of(sqlite_stale)
        self.paired([sqlite, redis])

    @precondition(lambda self: self.failed < MOST_FAILURES)
    @rule(times=st.integers(5, 13), step_s=st.sampled_from(STEPS_S[2:6]))
    def fail_again_and_again(self, times: int, step_s: float) -> None:
        """Until the host is only probed."""
        self.failed += times
        for _ in range(times):
            self.end(self.leased("one", 4), [FAILURE] * MANY)
            self.advance(step_s)

    @rule(times=st.integers(1, 12), step_s=st.sampled_from(STEPS_S[2:]))
    def work(self, times: int, step_s: float) -> None:
        for _ in range(times):
            self.end(self.leased("two", 4), [{"latency_s": 0.2}] * MANY)
            self.advance(step_s)

    @precondition(lambda self: self.pairs)
    @rule(which=some_pairs)
    def renew(self, which: list[int]) -> None:
        sqlite, redis = (
            self.run(backend.frontier.renew(CRAWL, leases))
            for backend, leases in zip(
                self.backends, zip(*self.chosen(which), strict=True), strict=True
            )
        )
        assert keys_of(redis) == keys_of(sqlite)

    @rule(worker=st.sampled_from(WORKERS))
    def release(self, worker: str) -> None:
        self.same(lambda frontier: frontier.release(CRAWL, worker))

    @rule(action=st.sampled_from(Control))
    def control(self, action: Control) -> None:
        self.same(lambda frontier: frontier.control(CRAWL, action))

    @rule(keys=some_keys)
    def retry_dead(self, keys: list[bytes] | None) -> None:
        self.same(lambda frontier: frontier.retry_dead(CRAWL, DeadFilter(fingerprints=keys)))

    @rule(keys=some_keys)
    def purge_dead(self, keys: list[bytes] | None) -> None:
        self.same(lambda frontier: frontier.purge_dead(CRAWL, DeadFilter(fingerprints=keys)))

    @rule(seconds=st.sampled_from(STEPS_S))
    def advance(self, seconds: float) -> None:
        for backend in self.backends:
            self.run(backend.advance(seconds))

    @invariant()
    def they_say_the_same(self) -> None:
        self.same(self.stats)
        self.same(lambda frontier: frontier.holders(CRAWL))
        self.same(dead)
        for order in HostOrder:
            self.same(partial(hosts, order=order))

    @rule()
    def they_have_the_same_tasks(self) -> None:
        for each in self.within(ENTRIES):
            found = [told(record) for record in self.both(partial(find, entry=each))]
            assert found[1:] == rounded(found[:1])


class SameOnCluster(SameMachine):
    """The hosts are spread over three servers. Each of them is asked for a part of what the worker
    wants, and perhaps twice: so who wants more than there is room for is not the same, and hosts
    are not shared here."""

    shares = False

    def fitting(self, rules: Rules) -> Rules:
        is_shared = rules.rate == "none"
        return replace(rules, concurrency_per_host=MANY) if is_shared else rules

    def found(self, lease: Lease, entries: Sequence[Entry]) -> list[Entry]:
        """Of chains, only those of the page's own host. Others are queued a step earlier, so of two
        that are found at once, by pages of two servers, the one that goes first may differ."""
        return [
            each
            for each in super().found(lease, entries)
            if each.task.chain is None or each.task.site == lease.task.site
        ]


@pytest.fixture(autouse=True)
def servers(redis_server: RedisServer, redis_cluster: RedisCluster) -> None:
    SameMachine.servers = redis_server
    SameOnCluster.servers = redis_cluster


TestSame = lives(SameMachine, 25, steps=30, is_slow=True)
TestSameOnCluster = pytest.mark.rare(lives(SameOnCluster, 25, steps=30, is_slow=True))
