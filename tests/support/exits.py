"""Tests of exits: pools, tasks that go by them, a worker that knows their addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from shoal.core.exit_policy import BUSY_WAIT_S
from shoal.core.exits import Blame, Exit, ExitEntry, LaneState, Passage, PoolRules, PoolState
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Entry, Grant, Holding, Lease, Outcome, Verdict
from support.frontiers import A_MOMENT_S, CRAWL, HOST, NOTHING, Backend, Client, entry, outcome

DC, RES = "dc", "res"
SECOND_HOST = "b.example"
HOURS = 3600.0
LONG_S = 1_000_000.0
PLENTY = 99
ASK_EVERY_S = 15.0
"""So often at least a worker with nothing to do looks for work."""

GOOD = Passage()
BLOCK = Passage(block="challenge")
"""By the dice, what is blocked cools for half of the full time."""


def exit_id(number: int, pool: str = DC) -> str:
    return f"{pool}-{number:010x}"


def listed(count: int, pool: str = DC) -> list[ExitEntry]:
    """So many exits, as the list of the pool has them."""
    return [ExitEntry(exit_id(number, pool)) for number in range(count)]


async def put_pool(frontier: Frontier, count: int, name: str = DC, /, **rules: Any) -> None:
    """A pool with so many exits, which nothing holds back unless told otherwise."""
    await frontier.put_pool(PoolRules(name=name, **rules), listed(count, name))


def of_pool(pool: str, each: Entry) -> Entry:
    """The task, as one of a pool."""
    return Entry(each.fingerprint, replace(each.task, proxy_pool=pool))


def laned(address: str, pool: str = DC, **fields: Any) -> Entry:
    """A task that goes by exits of a pool."""
    return of_pool(pool, entry(address, **fields))


def laned_pages(count: int, host: str = HOST, pool: str = DC, **fields: Any) -> list[Entry]:
    """So many of them, of one host. Of another pool they are other tasks."""
    return [laned(f"{host}/{pool}/{number}", pool, **fields) for number in range(count)]


class ExitClient(Client):
    """A worker that knows the addresses of exits, and has room for requests by them."""

    def __init__(
        self,
        frontier: Frontier,
        worker: str = "worker",
        crawl: str = CRAWL,
        pools: tuple[str, ...] = (DC, RES),
        slots: int = PLENTY,
    ) -> None:
        super().__init__(frontier, worker, crawl)
        self.pools, self.slots = pools, slots

    def asks(self, limit: int, holdings: Mapping[str, Holding] = NOTHING) -> Ask:
        return Ask(self.worker, limit, dict(holdings), self.pools, self.slots)

    async def ask(self, limit: int = 1, holdings: Mapping[str, Holding] = NOTHING) -> Grant:
        return await self.frontier.lease(self.crawl, self.asks(limit, holdings))

    async def exchange(
        self, *outcomes: Outcome, limit: int, holdings: Mapping[str, Holding] = NOTHING
    ) -> tuple[list[Lease], Grant]:
        return await self.frontier.exchange(self.crawl, outcomes, self.asks(limit, holdings))

    async def begin(self, *entries: Entry, **rules: Any) -> None:
        """Start a crawl whose leases last, of tasks by exits."""
        open_ = {"pools": (DC, RES), "lease_s": LONG_S, "concurrency_per_host": PLENTY}
        await self.start(*entries, **{**open_, **rules})

    async def take(self, limit: int = PLENTY) -> list[Lease]:
        """All that is handed out now, at most so many: one answer need not hold all of it."""
        taken = list[Lease]()
        while len(taken) < limit and (some := await self.lease(limit - len(taken))):
            taken += some
        assert len(taken) <= limit
        return taken

    async def good(self, *leases: Lease, **fields: Any) -> None:
        """The host answered."""
        for lease in leases:
            await self.end(lease, passage=GOOD, **fields)

    async def blocked(self, *leases: Lease, retry_in_s: float = 0.0, **passage: Any) -> None:
        """The host blocked these tries."""
        said = replace(BLOCK, **passage)
        for lease in leases:
            await self.end(lease, Verdict.RETRY, retry_in_s=retry_in_s, blocked=1, passage=said)

    async def faulty(self, *leases: Lease, blame: Blame = Blame.EXIT) -> None:
        """The exits of these tries could not be used: nothing was sent."""
        for lease in leases:
            await self.end(lease, Verdict.RETURNED, sent=False, passage=Passage(blame))

    async def unreached(self, *leases: Lease) -> None:
        """The exits of these tries could not reach the host."""
        for lease in leases:
            await self.end(lease, Verdict.RETRY, passage=Passage(Blame.PAIR))

    async def exit(self, number: int = 0, pool: str = DC) -> Exit:
        (found,) = [e for e in await self.frontier.exits(pool) if e.id == exit_id(number, pool)]
        return found

    async def pool(self, name: str = DC) -> PoolState:
        (found,) = [pool for pool in await self.frontier.pools() if pool.rules.name == name]
        return found

    async def lane(self, host: str = HOST, pool: str = DC) -> LaneState:
        lanes = await self.frontier.lanes(self.crawl, PLENTY)
        (found,) = [lane for lane in lanes if (lane.host, lane.pool) == (host, pool)]
        return found

    async def assert_free(self, *pools: str) -> None:
        """No exit of these pools is lent."""
        for name in pools or (DC,):
            assert [e.id for e in await self.frontier.exits(name) if e.leased] == []
            assert (await self.pool(name)).spent.leased == 0


def exit_client(backend: Backend, **how: Any) -> ExitClient:
    """A worker on the first frontier."""
    return ExitClient(backend.frontier, **how)


def another_client(backend: Backend, worker: str = "another", **how: Any) -> ExitClient:
    """A worker on a frontier of its own."""
    return ExitClient(backend.open_another(), worker, **how)


async def settle(backend: Backend) -> None:
    """Whoever found all exits busy looks again after this time."""
    await backend.advance(BUSY_WAIT_S + A_MOMENT_S)


async def pass_time(backend: Backend, client: ExitClient, seconds: float) -> None:
    """Let time pass in which a worker that can take nothing else asks and asks. What it gets it
    gives back at once."""
    while seconds > 0:
        await backend.advance(min(seconds, ASK_EVERY_S))
        seconds -= ASK_EVERY_S
        await give_back(client, await client.lease(1))


async def give_back(client: Client, leases: Sequence[Lease]) -> None:
    """Unsent, and without a word of the exit."""
    await client.finish(*(outcome(lease, Verdict.RETURNED, sent=False) for lease in leases))


def exits_of(leases: Sequence[Lease]) -> list[str]:
    """What each of them leaves by."""
    return [lease.lent.exit if lease.lent is not None else "no exit" for lease in leases]


def urls_of(leases: Sequence[Lease]) -> list[str]:
    """Host and path of each."""
    return [lease.task.url.removeprefix("http://") for lease in leases]
