"""SQLite and Redis, step by step through the same random lives of crawls by exits: what one lends,
blames and pays for, the other does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
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

from shoal.core.exits import Passage, PoolRules
from shoal.errors import ShoalError
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control, Entry, Grant, HostOrder, Lease, Outcome, Record
from support.exit_lives import (
    CRAWLS,
    MANY,
    MIXED,
    ONE_LANE,
    POOLS,
    RULES_OF_MIXED,
    STEPS_S,
    WORKERS,
    entries_of,
    exit_counts,
    kinds_of_ends,
    pools_of_mixed,
    pools_of_one,
    rules_of_one,
    some_ends,
)
from support.frontier_lives import rounded, told
from support.frontiers import Backend, SqliteBackend, outcome
from support.redis_backend import RedisBackend
from support.redis_groups import RedisCluster
from support.redis_servers import RedisServer
from support.state_machines import lives

T = TypeVar("T")
Pair = tuple[str, Lease, Lease]
"""A crawl, and the same lease of both."""
some_pairs = st.lists(st.integers(0, 8), min_size=1, max_size=4)
some_crawl = st.sampled_from([CRAWLS[0], *CRAWLS])
known_pools = st.sampled_from([POOLS, POOLS, POOLS, POOLS[:1], POOLS[1:]])


async def answer_of(call: Awaitable[T]) -> tuple[T | None, type[ShoalError] | None]:
    """The answer, or the kind of error."""
    try:
        return await call, None
    except ShoalError as error:
        return None, type(error)


async def dead(frontier: Frontier, crawl: str) -> list[Record]:
    return sorted(await frontier.dead(crawl, 100), key=lambda record: record.fingerprint)


async def lanes(frontier: Frontier, crawl: str) -> Any:
    return sorted(map(msgspec.to_builtins, await frontier.lanes(crawl, MANY)), key=str)


async def hosts(frontier: Frontier, crawl: str) -> Any:
    found = await frontier.hosts(crawl, 9, HostOrder.BUSIEST)
    return sorted(found, key=lambda host: host.host)


class SameExits(RuleBasedStateMachine):
    """Drives both, and compares all they say."""

    servers: ClassVar[RedisServer | RedisCluster]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.servers.flush()
        self.backends: list[Backend] = [
            SqliteBackend(Path(self.folder.name) / "frontier.db"),
            RedisBackend(self.servers.url),
        ]
        self.pairs: list[Pair] = []
        self.is_mixed = False

    def teardown(self) -> None:
        for backend in self.backends:
            self.run(backend.check())
            self.run(backend.close())
        self.runner.close()
        self.folder.cleanup()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def both(self, call: Callable[[Frontier], Awaitable[T]]) -> list[T]:
        """Ask both. If one raises, so must the other."""
        answers = [self.run(answer_of(call(backend.frontier))) for backend in self.backends]
        errors = [error for _, error in answers]
        assert errors[0] == errors[1]
        return [] if errors[0] else [value for value, _ in answers]  # type: ignore[misc]

    def same(self, call: Callable[[Frontier], Awaitable[Any]]) -> None:
        """Ask both for something that can be compared as it is."""
        answers = [msgspec.to_builtins(a, builtin_types=(bytes,)) for a in self.both(call)]
        assert answers[1:] == rounded(answers[:1])

    def entries(self, crawl: str) -> list[Entry]:
        return (MIXED if self.is_mixed else ONE_LANE)[crawl]

    @initialize(data=st.data(), is_mixed=st.sampled_from([False, False, True]))
    def begin(self, data: st.DataObject, is_mixed: bool) -> None:
        self.is_mixed = is_mixed
        for _ in range(2):
            self.put_pool(data)
        for crawl in CRAWLS:
            self.start(crawl, data)
            self.add(crawl, list(range(8)))

    @rule(data=st.data())
    def put_pool(self, data: st.DataObject) -> None:
        rules: PoolRules = data.draw(pools_of_mixed if self.is_mixed else pools_of_one)
        exits = entries_of(rules.name, data.draw(exit_counts), is_mixed=self.is_mixed)
        self.both(lambda frontier: frontier.put_pool(rules, exits))

    @rule(crawl=some_crawl, data=st.data())
    def start(self, crawl: str, data: st.DataObject) -> None:
        rules = RULES_OF_MIXED if self.is_mixed else data.draw(rules_of_one)
        self.both(lambda frontier: frontier.start(crawl, rules))

    @rule(crawl=some_crawl, data=st.data())
    def start_over(self, crawl: str, data: st.DataObject) -> None:
        self.both(lambda frontier: frontier.forget(crawl))
        self.start(crawl, data)
        self.add(crawl, list(range(9)))

    @rule(crawl=some_crawl, numbers=st.lists(st.integers(0, 9), min_size=1, max_size=6))
    def add(self, crawl: str, numbers: list[int]) -> None:
        wanted = [self.entries(crawl)[number] for number in numbers]
        self.same(lambda frontier: frontier.add(crawl, wanted))

    def asked(self, worker: str, limit: int, pools: tuple[str, ...] = POOLS) -> Ask:
        limit = MANY if self.is_mixed else limit
        return Ask(worker, limit, pools=pools, slots=limit)

    @rule(
        crawl=some_crawl,
        worker=st.sampled_from(WORKERS),
        limit=st.integers(1, 5),
        pools=known_pools,
    )
    def lease(self, crawl: str, worker: str, limit: int, pools: tuple[str, ...]) -> None:
        self.leased(crawl, self.asked(worker, limit, pools))

    def leased(self, crawl: str, ask: Ask) -> list[Pair]:
        return self.paired(crawl, self.both(lambda frontier: frontier.lease(crawl, ask)))

    def paired(self, crawl: str, grants: list[Grant]) -> list[Pair]:
        """The leases of both, which must be the same, by the same exits."""
        sqlite, redis = grants
        assert redis.state is sqlite.state
        mine, theirs = (
            sorted(grant.leases, key=lambda lease: lease.fingerprint) for grant in grants
        )
        assert [(lease.task.url, lease.lent) for lease in theirs] == [
            (lease.task.url, lease.lent) for lease in mine
        ]
        for one, other in zip(mine, theirs, strict=True):
            assert other.task == one.task
            assert (other.paced, other.alone, other.shared) == (one.paced, one.alone, one.shared)
            assert other.identity == one.identity
        if not mine:
            assert rounded(redis.wait_s) == sqlite.wait_s
        pairs = [(crawl, *each) for each in zip(mine, theirs, strict=True)]
        self.pairs += pairs
        self.advance(STEPS_S[0])  # No page is read in the very moment of its lease.
        return pairs

    @rule(crawl=some_crawl, worker=st.sampled_from(WORKERS), ends=some_ends)
    def lease_and_finish(self, crawl: str, worker: str, ends: list[dict[str, Any]]) -> None:
        self.end(self.leased(crawl, self.asked(worker, len(ends))), ends)

    @rule(
        crawl=some_crawl,
        times=st.integers(2, 6),
        kind=kinds_of_ends,
        step_s=st.sampled_from(STEPS_S),
        data=st.data(),
    )
    def again_and_again(
        self, crawl: str, times: int, kind: Any, step_s: float, data: st.DataObject
    ) -> None:
        """Until a site is known to block, an exit is out, or all is well."""
        end = data.draw(kind)
        for _ in range(times):
            self.end(self.leased(crawl, self.asked("one", 4)), [end] * MANY)
            self.advance(step_s)

    @precondition(lambda self: self.pairs)
    @rule(which=some_pairs, ends=some_ends)
    def finish(self, which: list[int], ends: list[dict[str, Any]]) -> None:
        """Most of what is chosen is stale."""
        self.end(self.chosen(which), ends)

    def chosen(self, which: list[int]) -> list[Pair]:
        return [self.pairs[-1 - number % len(self.pairs)] for number in which if self.pairs]

    def end(self, pairs: list[Pair], ends: list[dict[str, Any]]) -> None:
        for crawl in CRAWLS:
            stale = [
                self.run(backend.frontier.finish(crawl, tries))
                for backend, tries in self.tries_of(crawl, pairs, ends)
            ]
            assert len(stale[0]) == len(stale[1])

    def tries_of(
        self, crawl: str, pairs: list[Pair], ends: list[dict[str, Any]]
    ) -> list[tuple[Backend, list[Outcome]]]:
        """The same ends, of the leases that each has of a crawl."""
        ended = [(pair, end) for pair, end in zip(pairs, ends, strict=False) if pair[0] == crawl]
        tries = [
            [outcome(pair[1:][n], **self.fitting(pair[1], end)) for pair, end in ended]
            for n in (0, 1)
        ]
        return list(zip(self.backends, tries, strict=True))

    def fitting(self, lease: Lease, end: dict[str, Any]) -> dict[str, Any]:
        """An end that such a lease can have: one without an exit says nothing of exits. Where
        hosts, and tasks with exits and without, would compete for a turn, nothing slows them down:
        who comes first is for a frontier to choose."""
        passage = end.get("passage")
        if lease.lent is None or not lease.lent.exit:
            passage = None
        if not self.is_mixed:
            return end | {"passage": passage}
        passage = Passage() if passage is not None and end.get("sent", True) else None
        return end | {"passage": passage, "pushback": None, "fault": False}

    @rule(crawl=some_crawl, which=some_pairs, ends=some_ends, limit=st.integers(1, 5))
    def exchange(
        self, crawl: str, which: list[int], ends: list[dict[str, Any]], limit: int
    ) -> None:
        ask = self.asked("one", limit)
        (stale, mine), (others, theirs) = (
            self.run(backend.frontier.exchange(crawl, tries, ask))
            for backend, tries in self.tries_of(crawl, self.chosen(which), ends)
        )
        assert len(stale) == len(others)
        self.paired(crawl, [mine, theirs])

    @precondition(lambda self: self.pairs)
    @rule(which=some_pairs)
    def renew(self, which: list[int]) -> None:
        for crawl, one, other in self.chosen(which):
            sqlite, redis = (
                self.run(backend.frontier.renew(crawl, [lease]))
                for backend, lease in zip(self.backends, (one, other), strict=True)
            )
            assert len(redis) == len(sqlite)

    @rule(crawl=some_crawl, worker=st.sampled_from(WORKERS))
    def release(self, crawl: str, worker: str) -> None:
        self.same(lambda frontier: frontier.release(crawl, worker))

    @rule(crawl=some_crawl, action=st.sampled_from(Control))
    def control(self, crawl: str, action: Control) -> None:
        self.same(lambda frontier: frontier.control(crawl, action))

    @rule(crawl=some_crawl)
    def retry_dead(self, crawl: str) -> None:
        self.same(lambda frontier: frontier.retry_dead(crawl))

    @rule(crawl=some_crawl)
    def purge_dead(self, crawl: str) -> None:
        self.same(lambda frontier: frontier.purge_dead(crawl))

    @rule(seconds=st.sampled_from(STEPS_S))
    def advance(self, seconds: float) -> None:
        for backend in self.backends:
            self.run(backend.advance(seconds))

    @rule(crawl=some_crawl, times=st.integers(2, 8), step_s=st.sampled_from(STEPS_S[3:6]))
    def wait(self, crawl: str, times: int, step_s: float) -> None:
        """Ask and ask, and hold what was handed out."""
        for _ in range(times):
            self.advance(step_s)
            self.leased(crawl, self.asked("two", 2))

    @invariant()
    def they_say_the_same(self) -> None:
        self.same(lambda frontier: frontier.pools())
        for pool in POOLS:
            self.same(lambda frontier, pool=pool: frontier.exits(pool))  # type: ignore[misc]
        for crawl in CRAWLS:
            self.same(partial(self.counted, crawl=crawl))
            self.same(partial(lanes, crawl=crawl))
            self.same(partial(hosts, crawl=crawl))
            self.same(partial(dead, crawl=crawl))

    async def counted(self, frontier: Frontier, crawl: str) -> Any:
        return msgspec.structs.replace(await frontier.stats(crawl), pages_per_s=0.0)

    @rule(crawl=some_crawl)
    def they_have_the_same_tasks(self, crawl: str) -> None:
        for each in self.entries(crawl):
            found = self.both(lambda frontier, key=each: frontier.find(crawl, key))  # type: ignore[misc]
            known = [told(record) for record in found]
            assert known[1:] == rounded(known[:1])


class SameExitsOnCluster(SameExits):
    """All exits, and the crawls that use them, are in one slot."""


@pytest.fixture
def one_server(redis_server: RedisServer) -> None:
    SameExits.servers = redis_server


@pytest.fixture
def one_cluster(redis_cluster: RedisCluster) -> None:
    SameExitsOnCluster.servers = redis_cluster


TestSameExits = pytest.mark.usefixtures("one_server")(lives(SameExits, 40, steps=25, is_slow=True))
TestSameExitsOnCluster = pytest.mark.rare(
    pytest.mark.usefixtures("one_cluster")(lives(SameExitsOnCluster, 40, steps=25, is_slow=True))
)
