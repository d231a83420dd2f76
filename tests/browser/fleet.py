"""A fleet at work, as a dashboard would show it: crawls of every state, with workers that go on
while somebody looks. Hosts are those of examples; nothing is fetched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from math import sin
from random import Random
from typing import Any, Self

import msgspec

from shoal.alerts.notes import NOW, PAST
from shoal.alerts.states import AlertState
from shoal.config import Rules
from shoal.coordinator.runs import Run, past
from shoal.core.exits import Blame, ExitEntry, Passage, PoolRules
from shoal.core.failures import FailureKind
from shoal.core.identities import IdentityReport, LoginChange
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.drivers.sqlite import path_of
from shoal.frontier import open_frontier
from shoal.frontier.admission import Admission
from shoal.frontier.board import Notes
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Ask, Control, Lease, Outcome, Pulse, Stats, Verdict
from shoal.insight.history import HOUR_S, HOURS_KEPT, MINUTE_S, Hour, Point
from shoal.results import open_results
from shoal.results.port import Batch
from shoal.version import __version__
from support.processes import Folder

DAY_S = 86_400.0
PRICES, MEMBERS, NEWS, SHOP = "prices", "members", "news", "shop"
POOL, GROUP = "residential", "@forum"
SHOPS = (
    *("kettle.example", "lamps.example", "oak-and-wool.example", "paper.example", "tern.example"),
    *("garden-tools.example", "old-mill.example", "bowls.example", "holm.example"),
    *("a-very-long-name-of-a-shop-that-sells-everything-for-the-kitchen.example",),
)
TURNS = 600
"""Of work in the largest crawl, a second each: longer than anybody looks on."""
CREW = tuple(f"crawl-{machine}:{4711 + 13 * machine}" for machine in range(1, 7))
FAILURES = (
    (FailureKind.HANDLER, "ValueError: could not convert string to float: 'on request'"),
    (FailureKind.TIMEOUT, "no answer within 30 s"),
    (FailureKind.BLOCKED, "403 Forbidden"),
    (FailureKind.STATUS_4XX, "404 Not Found"),
    (FailureKind.STATUS_5XX, "502 Bad Gateway"),
    (FailureKind.CONNECTION, "connection closed in the middle of the body"),
    (FailureKind.DNS, "no such name: old-mill.example"),
)
TRACEBACK = """Traceback (most recent call last):
  File "spider.py", line 21, in product
    price=float(page.css("span.price::text").get()),
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: could not convert string to float: 'on request'"""
CONFIG = """
[[schedule]]
name = "shop"
target = "spider.py:Shop"
cron = "0 3 * * *"
window = "2h"

[[schedule]]
name = "prices-hourly"
target = "prices.py:Prices"
cron = "15 * * * *"
timezone = "Europe/Berlin"

[alerts.routes.ops]
kind = "command"
command = ["true"]

[alerts.routes.pager]
kind = "command"
command = ["false"]
"""


class Fleet:
    """Stages all of it, and works on until it is left. For `support.sites.serving`."""

    def __init__(
        self,
        frontier: str,
        results: str,
        pages: int = 400,
        minutes: int = 0,
        guests: Sequence[tuple[str, Pulse]] = (),
    ) -> None:
        """`pages` is how large the largest crawl is. In a file, it may have begun some minutes
        ago. `guests` are workers of other crawls: they are kept alive, too."""
        self._addresses = frontier, results
        self._guests = guests
        self._pages = pages
        self._minutes = minutes
        self._dice = Random(7)
        self._done = dict.fromkeys(CREW, 0)
        self._back_s = 0.0
        """How long ago it is, as the frontier sees it."""

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> Self:
        """On the stores that the commands of a folder use."""
        return cls(folder.address("SHOAL_FRONTIER"), folder.address("SHOAL_RESULTS"), **options)

    async def __aenter__(self) -> Self:
        self._frontier = self._opened()
        self._results = open_results(self._addresses[1])
        await self._stage()
        self._work = asyncio.create_task(self._go_on())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._work.cancel()
        with suppress(asyncio.CancelledError):
            await self._work
        await self._results.close()
        await self._frontier.close()

    def _opened(self) -> Frontier:
        if not self._minutes:
            return open_frontier(self._addresses[0])
        return SqliteFrontier(path_of(self._addresses[0]), clock=lambda: time.time() - self._back_s)

    async def _stage(self) -> None:
        frontier, now = self._frontier, time.time()
        self._back_s = self._minutes * MINUTE_S
        await frontier.add("import-2027", _entries(Rules(), ["https://holm.example/"]))
        await self._begin("catalogue", self._pages // 4)
        await self._visit("catalogue", self._pages // 4, may_retry=False)
        await frontier.control("catalogue", Control.SEAL)
        await self._begin("legacy", self._pages // 4)
        await self._visit("legacy", self._pages // 9)
        await frontier.control("legacy", Control.CANCEL)
        await self._begin(NEWS, self._pages // 2)
        await self._visit(NEWS, self._pages // 6)
        await frontier.control(NEWS, Control.PAUSE)
        await self._stage_members()
        await self._begin(PRICES, self._pages)
        await self._go_through_the_past()
        await self._save_items()
        await _keep_alerts(frontier.notes, now)
        await _keep_runs(frontier.notes, now)
        await self._beat()

    async def _go_through_the_past(self) -> None:
        """Three fifths of the largest crawl, with a point of each minute as a leader keeps it."""
        pages, points = self._pages * 3 // 5, list[Point]()
        for minute in range(self._minutes):
            self._back_s = (self._minutes - 1 - minute) * MINUTE_S
            wave = 1 + 0.5 * sin(minute / 9) + 0.2 * self._dice.random()
            await self._visit(PRICES, int(wave * pages / self._minutes))
            points.append(_point(await self._frontier.stats(PRICES), time.time() - self._back_s))
        self._back_s = 0.0
        await _keep_points(self._frontier.notes, points)
        if not points:
            await self._visit(PRICES, pages)

    async def _begin(self, crawl: str, pages: int) -> None:
        rules = Rules(rate="none", robots=False, concurrency_per_host=1000)
        await self._frontier.start(crawl, rules)
        urls = [
            f"https://{SHOPS[min(self._dice.randrange(14), 9)]}/{crawl}/product/{n:05}?colour=blue"
            for n in range(pages)
        ]
        await self._frontier.add(crawl, _entries(rules, urls))

    async def _visit(self, crawl: str, pages: int, *, may_retry: bool = True) -> None:
        """Visit some, by turns."""
        for worker in CREW:
            share = -(-pages // len(CREW))
            while share > 0:
                leases = (await self._frontier.lease(crawl, Ask(worker, min(share, 200)))).leases
                if not leases:
                    break
                ends = [self._outcome(lease, may_retry=may_retry) for lease in leases]
                await self._frontier.finish(crawl, ends)
                share -= len(leases)

    def _outcome(self, lease: Lease, *, may_retry: bool = True, **more: Any) -> Outcome:
        """Mostly done. One host fails most."""
        latency_s = self._dice.lognormvariate(-1.6, 0.5)
        odds = 0.12 if lease.task.site == "old-mill.example" else 0.012
        if self._dice.random() > odds:
            return Outcome(
                lease=lease, verdict=Verdict.DONE, latency_s=latency_s, items=1,
                body_bytes=41_000, wire_bytes=9_300, duplicates=self._dice.randrange(4), **more,
            )  # fmt: skip
        kind, reason = self._dice.choice(FAILURES)
        is_over = not may_retry or self._dice.random() < 0.6
        return Outcome(
            lease=lease,
            verdict=Verdict.DEAD if is_over else Verdict.RETRY,
            kind=kind,
            reason=reason,
            detail=TRACEBACK if kind is FailureKind.HANDLER else "",
            retry_in_s=60.0,
            blocked=kind is FailureKind.BLOCKED,
            fault=kind in (FailureKind.TIMEOUT, FailureKind.STATUS_5XX),
            latency_s=latency_s,
            **more,
        )

    async def _stage_members(self) -> None:
        """A crawl whose tasks go by exits, and some with accounts."""
        frontier = self._frontier
        await frontier.put_pool(
            PoolRules(name=POOL, per_gb=8.0, budget=20.0, concurrency=50),
            [ExitEntry(f"{POOL}-{n:010x}", "residential", "de") for n in range(1, 9)],
        )
        names = ("alice", "bob", "carol", "dave")
        await frontier.put_pool(
            PoolRules(name=GROUP, concurrency=1), [ExitEntry(f"{GROUP}#{name}") for name in names]
        )
        rules = Rules(
            rate="none", robots=False, concurrency_per_host=100, pools=(POOL,), sessions=("forum",)
        )
        await frontier.start(MEMBERS, rules)
        for session, pool in ((None, POOL), ("forum", None)):
            tasks = [
                Task(
                    url=f"https://tern.example/{session or 'open'}/{n}",
                    proxy_pool=pool,
                    session=session,
                )
                for n in range(60)
            ]
            await frontier.add(MEMBERS, [Admission(rules).admit(task) for task in tasks])
        ask = Ask(CREW[0], 40, {}, (POOL, GROUP), 40)
        for number, lease in enumerate((await frontier.lease(MEMBERS, ask)).leases):
            if lease.identity is not None:
                await frontier.finish(MEMBERS, [_login(lease)])
                continue
            blame = Blame.EXIT if number % 8 == 3 else Blame.NOBODY
            passage = Passage(blame, block="challenge" if number % 8 == 5 else "")
            await frontier.finish(MEMBERS, [self._outcome(lease, passage=passage)])

    async def _save_items(self) -> None:
        found = [
            StoredItem(
                kind="Product",
                key=f"KE-{n:05}",
                data=msgspec.json.encode(
                    {"sku": f"KE-{n:05}", "title": "Enamel kettle, blue", "price": 24.5 + n}
                ),
                url=f"https://kettle.example/prices/product/{n:05}?colour=blue",
                fingerprint=n.to_bytes(16, "big"),
                scraped_at=time.time() - n,
            )
            for n in range(1, 120)
        ]
        await self._results.save(PRICES, Batch(items=found))

    async def _go_on(self) -> None:
        """A little work in the largest crawl, and signs of life."""
        held: list[Lease] = []
        for _ in range(TURNS):
            await self._frontier.finish(PRICES, [self._outcome(lease) for lease in held])
            held = []
            for worker in CREW:
                room = self._dice.randrange(0, 3)
                held += (await self._frontier.lease(PRICES, Ask(worker, room))).leases
            await self._beat()
            await asyncio.sleep(1.0)

    async def _beat(self) -> None:
        for crawl, pulse in self._guests:
            await self._frontier.beat(crawl, pulse)
        for number, worker in enumerate(CREW):
            machine, _, pid = worker.partition(":")
            self._done[worker] += 8
            pulse = Pulse(
                worker=worker, host=machine, pid=int(pid), version=__version__,
                in_flight=self._dice.randrange(20, 33), pages=5_200 + self._done[worker],
                pages_per_s=(0.9 if number == 4 else 8.4) + self._dice.random(),
                rss_bytes=61_000_000 + 700_000 * number, backlog=self._dice.randrange(4),
            )  # fmt: skip
            for crawl in (PRICES, MEMBERS)[: 2 if number < 2 else 1]:
                await self._frontier.beat(crawl, pulse)


def _entries(rules: Rules, urls: Sequence[str]) -> list[Any]:
    admission = Admission(rules)
    return [admission.admit(Task(url=url, job_type="product")) for url in urls]


def _login(lease: Lease) -> Outcome:
    assert lease.identity is not None
    if lease.identity.name.endswith("carol"):
        report = IdentityReport(LoginChange.FAILED, reason="the password is wrong")
    else:
        report = IdentityReport(LoginChange.IN, jar=b"x", user_agent="Mozilla/5.0")
    return Outcome(lease=lease, verdict=Verdict.RETURNED, identity=report)


def _point(stats: Stats, at: float) -> Point:
    return Point(
        at=at, added=stats.added, remaining=stats.remaining, done=stats.done, dead=stats.dead,
        retries=stats.retries, sent=stats.sent, blocked=stats.blocked, duplicates=stats.duplicates,
        items=stats.items, workers=6,
    )  # fmt: skip


async def _keep_points(notes: Notes, points: Sequence[Point]) -> None:
    hours: dict[int, list[Point]] = {}
    for point in points:
        hours.setdefault(int(point.at // HOUR_S), []).append(point)
    for hour, own in hours.items():
        text = msgspec.json.encode(Hour(own))
        await notes.write(f"points/{PRICES}", f"{hour % HOURS_KEPT:02}", text)


async def _keep_alerts(notes: Notes, now: float) -> None:
    def state(alert: str, crawl: str, text: str, ago_s: float, **more: Any) -> AlertState:
        since = now - ago_s
        return AlertState(
            alert=alert, crawl=crawl, state=more.pop("state", "firing"), text=text, value=0.3,
            limit=0.1, since=since, fired_at=since, seen_at=now, **more,
        )  # fmt: skip

    firing = [
        state("blocked", PRICES, "31% of 1,204 requests were blocked lately", 1_260.0),
        state("slow_worker", PRICES, "crawl-5:4776 does 0.9 pages/s, the median is 8.6", 940.0),
        state("failures", MEMBERS, "24% of 212 tries failed lately", 40.0, state="pending"),
    ]
    for one in firing:
        await notes.write(NOW, one.key, msgspec.json.encode(one))
    for number, (alert, crawl, text) in enumerate(
        (
            ("stalled", NEWS, "nothing was fetched for 15 minutes"),
            ("dead", "catalogue", "2.1% of 4,100 pages are dead"),
            ("no_leader", "", "no coordinator was leading for 11 minutes, until now"),
        )
    ):
        ago_s = 9_000.0 * (number + 1)
        over = state(alert, crawl, text, ago_s, state="resolved", resolved_at=now - ago_s + 1_500.0)
        await notes.write(PAST, f"{over.resolved_at:017.3f} {over.key}", msgspec.json.encode(over))


async def _keep_runs(notes: Notes, now: float) -> None:
    for days in range(1, 12):
        due = (now - days * DAY_S) // DAY_S * DAY_S + 3 * 3600
        stamp = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(due))
        pages = 48_000 + 731 * days
        run = Run(
            crawl=f"{SHOP}@{stamp}", schedule=SHOP, due_at=due, fired_at=due,
            state="cancelled" if days == 4 else "finished", started_at=due,
            ended_at=due + 2_400.0 + 310.0 * (days * 7 % 5), total=pages, done=pages - 12 * days,
            failed=12 * days, items=pages - 900, unchanged=31_000, gone=17 * days,
            is_forgotten=days > 1, deadline=due + 3_400.0,
        )  # fmt: skip
        await notes.write(past(SHOP), run.crawl, msgspec.json.encode(run))
