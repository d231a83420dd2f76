"""A worker that is told to stop at an awkward moment leaves nothing in anybody's hands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import cast

import pytest

from shoal.archive.port import Archive, RawPage
from shoal.config import Rules, Settings
from shoal.core.exits import Lent
from shoal.core.identities import IdentityReport, LeasedIdentity, LoginChange
from shoal.core.records import Robots
from shoal.core.task import Task
from shoal.fetch.port import Request, Response
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, CrawlState, Grant, Lease, Outcome, Pulse, Stats, Verdict
from shoal.results.port import Batch, Results
from shoal.spider.spider import Spider
from shoal.worker import leasing
from shoal.worker.assignment import Assignment, Stores
from shoal.worker.report import Report
from shoal.worker.visits import spider_visits
from shoal.worker.visits.spider_visits import spider_worker
from shoal.worker.worker import Visits, Worker
from support.accounts import SITE, FakeSessions, Shop
from support.frontiers import ALLOW_ALL
from support.until import in_time, until


def lease(name: str) -> Lease:
    """One that ends without a request: our own guard refuses the address."""
    task = Task(url=f"http://127.0.0.1/{name}", site=name)
    return Lease(name.encode(), name, task, robots_at=1.0)


class BothStores:
    """Both stores, as far as a worker knows them. What is granted next, a test says."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.ended: dict[str, Outcome] = {}
        self.grants: list[list[Lease]] = []
        self.asked_with: list[str] = []
        """The tasks whose ends came with a request for more."""
        self.exchanging = asyncio.Event()
        self.go_on = asyncio.Event()
        self.answer_slow_one = asyncio.Event()
        self.state = CrawlState.RUNNING

    def _granted(self) -> Grant:
        leases = self.grants.pop(0) if self.grants else []
        self.held |= {lease.token for lease in leases}
        return Grant(self.state, leases)

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        return self._granted()

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        for outcome in outcomes:
            self.held.remove(outcome.lease.token)
            self.ended[outcome.lease.token] = outcome
        return []

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        self.asked_with += [outcome.lease.token for outcome in outcomes]
        stale = await self.finish(crawl, outcomes)
        grant = self._granted()
        self.exchanging.set()
        await in_time("the test to go on", self.go_on.wait())
        return stale, grant

    async def stats(self, crawl: str) -> Stats:
        return Stats(crawl=crawl, state=self.state, rules=Rules(), created_at=0.0)

    async def robots(self, crawl: str, host: str) -> Robots:
        if host == "slow":
            await in_time("the test to let it answer", self.answer_slow_one.wait())
        return ALLOW_ALL

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        return False

    async def save(self, crawl: str, batch: Batch) -> None:
        return None


@pytest.fixture
async def stores() -> BothStores:
    return BothStores()


def worker_on(stores: BothStores, archive: Archive | None = None) -> Worker:
    own = Stores(cast(Frontier, stores), cast(Results, stores), archive)
    assignment = Assignment("worker", "crawl", own, Settings().concurrency)
    return spider_worker(assignment, lambda rules: Spider(), Settings())


async def test_what_is_granted_after_the_word_to_stop_is_given_back(stores: BothStores) -> None:
    stores.grants = [[lease("first")], [lease("late"), lease("later")]]
    worker = worker_on(stores)
    running = asyncio.create_task(worker.run())
    await in_time("an exchange", stores.exchanging.wait())
    worker.drain()
    for _ in range(20):  # It has long settled all else when the grant arrives.
        await asyncio.sleep(0)
    stores.go_on.set()
    await in_time("the worker's end", running)
    assert stores.held == set()
    assert stores.ended["first"].verdict is Verdict.DEAD
    for token in ("late", "later"):
        outcome = stores.ended[token]
        assert (outcome.verdict, outcome.sent) == (Verdict.RETURNED, False)


async def test_a_crawl_that_is_over_is_asked_for_no_more(stores: BothStores) -> None:
    """A crawl is cancelled and started over while a page of the old one is still in hand."""
    stores.go_on.set()
    stores.grants = [[lease("quick"), lease("slow")]]
    worker = worker_on(stores)
    running = asyncio.create_task(worker.run())
    await until("the lease", lambda: "quick" in stores.held)
    stores.state = CrawlState.CANCELLED
    await until("its end", lambda: "quick" not in stores.held)
    stores.state, stores.grants = CrawlState.RUNNING, [[lease("new")]]
    stores.answer_slow_one.set()
    await until("the new one's end", lambda: "new" in stores.ended)
    worker.drain()
    await in_time("the worker's end", running)
    assert stores.asked_with == ["quick", "new"]
    assert {outcome.verdict for outcome in stores.ended.values()} == {Verdict.DEAD}


class PlentifulStores(BothStores):
    """As many leases as are asked for, until it is told to go on; only then it archives."""

    stored = 0

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        if not self.go_on.is_set():
            granted = len(self.held) + len(self.ended)
            self.grants = [[lease(f"{granted + number}") for number in range(ask.room)]]
        return self._granted()

    async def store(self, crawl: str, pages: Sequence[RawPage]) -> list[str]:
        await in_time("the test to go on", self.go_on.wait())
        self.stored += len(pages)
        return ["somewhere"] * len(pages)


def is_full(worker: Worker) -> bool:
    """Nothing is in flight, and nothing is asked for."""
    decides = worker._leasing
    return not decides.in_flight and decides.wait_s(inf, worker._committer) is None


async def test_bodies_that_wait_for_the_archive_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, at_most, slots = 1000, 8, Settings().concurrency

    class Fetcher:
        user_agent = "Test/1"

        def __init__(self, settings: Settings) -> None: ...

        async def fetch(self, request: Request) -> Response:
            return Response(request.task.url, 200, {}, b"x" * size, 0.1)

        async def close(self) -> None: ...

    monkeypatch.setattr(spider_visits, "open_fetcher", Fetcher)
    monkeypatch.setattr(leasing, "MAX_HELD_BYTES", at_most * size)
    stores = PlentifulStores()
    worker = worker_on(stores, cast(Archive, stores))
    running = asyncio.create_task(worker.run())
    await until(
        "a worker that is full",
        lambda: stores.held and is_full(worker),
    )
    assert at_most < len(stores.held) <= at_most + slots < slots * leasing.HELD_PER_SLOT
    stores.go_on.set()
    await until("the end of all", lambda: not stores.held)
    worker.drain()
    await in_time("the worker's end", running)
    assert stores.stored == len(stores.ended)


async def test_a_worker_that_stays_says_when_there_is_nothing_to_do(stores: BothStores) -> None:
    idle, states = asyncio.Event(), []

    def on_idle() -> None:
        states.append(worker.over_as)
        idle.set()

    own = Stores(cast(Frontier, stores), None)
    assignment = Assignment("w", "crawl", own, slots=1, until_finished=False)
    worker = Worker(assignment, cast(Visits, NoVisits()), on_idle=on_idle)
    stores.state = CrawlState.FINISHED
    running = asyncio.create_task(worker.run())
    await in_time("nothing to do", idle.wait())
    assert states[-1] is CrawlState.FINISHED
    idle.clear()
    worker.wake()
    assert worker.over_as is None  # Until it has looked again.
    await in_time("nothing to do", idle.wait())
    assert states[-1] is CrawlState.FINISHED
    worker.drain()
    await in_time("the worker's end", running)


class NoVisits:
    """Nothing is ever granted."""

    async def visit(self, lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
        raise AssertionError(lease)

    async def close(self) -> None: ...


class LendingStores(BothStores):
    """Lends one account: first to log in, then for the page."""

    def __init__(self) -> None:
        super().__init__()
        self.asks: list[Ask] = []
        self.turns: list[str] = []

    async def stats(self, crawl: str) -> Stats:
        return Stats(crawl=crawl, state=self.state, rules=SESSION_RULES, created_at=0.0)

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        self.asks.append(ask)
        grant = self._granted()
        grant.decided = time.monotonic()
        return grant

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        return await self.finish(crawl, outcomes), await self.lease(crawl, ask)

    async def turn(self, crawl: str, host: str, lent: Lent | None) -> float:
        self.turns.append(host)
        return 0.0


SESSION_RULES = Rules(robots=False, sessions=("shop",), session="shop")


def leased(token: str, identity: LeasedIdentity) -> Lease:
    task = Task(url=f"{SITE}/product", site="shop.example", session="shop")
    return Lease(token.encode(), token, task, identity=identity)


class SilentShop(Shop):
    """Never answers."""

    async def fetch(self, request: Request) -> Response:
        self.asked.append(request)
        await in_time("the end of the test", asyncio.Event().wait())
        raise AssertionError


async def test_an_account_rests_whose_request_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, stores = SilentShop(), LendingStores()
    monkeypatch.setattr(spider_visits, "open_fetcher", lambda settings: shop)
    stores.grants = [[leased("page", LeasedIdentity("shop#alice", is_in=True))]]
    held = Stores(cast(Frontier, stores), cast(Results, stores))
    assignment = Assignment("w", "crawl", held, 1, sessions=FakeSessions(), drain_s=0.0)
    worker = spider_worker(assignment, lambda rules: Spider(), Settings())
    running = asyncio.create_task(worker.run())
    await until("the request", lambda: bool(shop.asked))
    worker.drain()
    await in_time("the worker's end", running)
    outcome = stores.ended["page"]
    assert outcome.verdict is Verdict.RETURNED
    assert outcome.identity == IdentityReport(LoginChange.CUT)


async def test_an_account_is_logged_in_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, sessions, stores = Shop(), FakeSessions(), LendingStores()
    monkeypatch.setattr(spider_visits, "open_fetcher", lambda settings: shop)
    stores.grants = [[leased("login", LeasedIdentity("shop#alice"))]]
    assignment = Assignment(
        "w", "crawl", Stores(cast(Frontier, stores), cast(Results, stores)), 1, sessions=sessions
    )
    worker = spider_worker(assignment, lambda rules: Spider(), Settings())
    running = asyncio.create_task(worker.run())
    await until("the login", lambda: "login" in stores.ended)
    said = stores.ended["login"].identity
    assert said is not None
    assert said.change is LoginChange.IN
    stores.grants = [[leased("page", LeasedIdentity("shop#alice", True, said.jar or b""))]]
    await until("the page", lambda: "page" in stores.ended)
    worker.drain()
    await in_time("the worker's end", running)
    assert shop.lines == ["GET /login", "POST /login", "GET /home", "GET /product"]
    assert stores.turns == ["shop.example"] * 2
    assert stores.ended["page"].reason.startswith("NotImplementedError")
    assert stores.asks[0].pools == ("@shop",)
    assert sessions.calls == ["open", "keep_fresh", "close"]
