"""For tests of exits: pools, tasks that use them, and a worker that knows their addresses."""

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
"""The longest time after which a worker with nothing to do asks for work again."""

GOOD = Passage()
BLOCK = Passage(block="challenge")
"""A passage that was blocked. Its dice let the exit cool for half of the full time."""


def exit_id(number: int, pool: str = DC) -> str:
    return f"{pool}-{number:010x}"


def listed(count: int, pool: str = DC) -> list[ExitEntry]:
    """Entries for `count` exits of a pool."""
    return [ExitEntry(exit_id(number, pool)) for number in range(count)]


async def put_pool(frontier: Frontier, count: int, name: str = DC, /, **rules: Any) -> None:
    """Put a pool with `count` exits, which nothing holds back unless `rules` say so."""
    await frontier.put_pool(PoolRules(name=name, **rules), listed(count, name))


def of_pool(pool: str, each: Entry) -> Entry:
    """The same task with a pool."""
    return Entry(each.fingerprint, replace(each.task, proxy_pool=pool))


def laned(address: str, pool: str = DC, **fields: Any) -> Entry:
    """A task that uses the exits of a pool."""
    return of_pool(pool, entry(address, **fields))


def laned_pages(count: int, host: str = HOST, pool: str = DC, **fields: Any) -> list[Entry]:
    """`count` tasks of one host that use a pool. For another pool, they are other tasks."""
    return [laned(f"{host}/{pool}/{number}", pool, **fields) for number in range(count)]


class ExitClient(Client):
    """A worker that knows the addresses of exits and has slots for requests through them."""

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
        """Start a crawl of tasks that use exits, with leases that do not expire."""
        open_ = {"pools": (DC, RES), "lease_s": LONG_S, "concurrency_per_host": PLENTY}
        await self.start(*entries, **{**open_, **rules})

    async def take(self, limit: int = PLENTY) -> list[Lease]:
        """Lease everything available now, up to `limit`. One answer need not hold all of it."""
        taken = list[Lease]()
        while len(taken) < limit and (some := await self.lease(limit - len(taken))):
            taken += some
        assert len(taken) <= limit
        return taken

    async def good(self, *leases: Lease, **fields: Any) -> None:
        """End these tries as answered by the host."""
        for lease in leases:
            await self.end(lease, passage=GOOD, **fields)

    async def blocked(self, *leases: Lease, retry_in_s: float = 0.0, **passage: Any) -> None:
        """End these tries as blocked by the host."""
        said = replace(BLOCK, **passage)
        for lease in leases:
            await self.end(lease, Verdict.RETRY, retry_in_s=retry_in_s, blocked=1, passage=said)

    async def faulty(self, *leases: Lease, blame: Blame = Blame.EXIT) -> None:
        """End these tries as unsent, because their exits could not be used."""
        for lease in leases:
            await self.end(lease, Verdict.RETURNED, sent=False, passage=Passage(blame))

    async def unreached(self, *leases: Lease) -> None:
        """End these tries as failed, because their exits could not reach the host."""
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
        """Assert that no exit of these pools is leased."""
        for name in pools or (DC,):
            assert [e.id for e in await self.frontier.exits(name) if e.leased] == []
            assert (await self.pool(name)).spent.leased == 0


def exit_client(backend: Backend, **how: Any) -> ExitClient:
    """A worker that uses the backend's first frontier."""
    return ExitClient(backend.frontier, **how)


def another_client(backend: Backend, worker: str = "another", **how: Any) -> ExitClient:
    """A worker that uses a frontier of its own."""
    return ExitClient(backend.open_another(), worker, **how)


async def settle(backend: Backend) -> None:
    """Let enough time pass that a lane that found all exits busy is tried again."""
    await backend.advance(BUSY_WAIT_S + A_MOMENT_S)


async def pass_time(backend: Backend, client: ExitClient, seconds: float) -> None:
    """Let time pass while a worker keeps asking for work. Leases it gets are given back at once."""
    while seconds > 0:
        await backend.advance(min(seconds, ASK_EVERY_S))
        seconds -= ASK_EVERY_S
        await give_back(client, await client.lease(1))


async def give_back(client: Client, leases: Sequence[Lease]) -> None:
    """Return leases as unsent, with no report on their exits."""
    await client.finish(*(outcome(lease, Verdict.RETURNED, sent=False) for lease in leases))


def exits_of(leases: Sequence[Lease]) -> list[str]:
    """The exit of each lease."""
    return [lease.lent.exit if lease.lent is not None else "no exit" for lease in leases]


def urls_of(leases: Sequence[Lease]) -> list[str]:
    """Host and path of each lease."""
    return [lease.task.url.removeprefix("http://") for lease in leases]
