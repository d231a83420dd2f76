"""Takes samples of all crawls at one moment, for metrics, alerts and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.coordinator.lateness import remaining_s
from shoal.coordinator.runs import Run, history, schedule_of, under_way
from shoal.core.identities import Account
from shoal.errors import UnknownCrawl
from shoal.frontier.board import Leader
from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import CrawlState, Host, HostOrder, Pulse, Stats
from shoal.insight.status import FEW_HOSTS, concentration

SHOWN_AFTER_END_S = 3600.0
"""For how long after its end a crawl is still sampled."""
MAX_CRAWLS = 200
"""How many crawls to sample: those under way first, then the newest."""
HOSTS = 10


class Sample(msgspec.Struct, kw_only=True, frozen=True):
    """A crawl at one moment."""

    at: float
    stats: Stats
    workers: list[Pulse] = []
    failing: list[Host] = []
    """The hosts with the most failures."""
    busiest: list[Host] = []
    """The hosts with the most work left, if asked for."""
    schedule: str | None = None
    """The schedule of which the crawl is a run."""
    deadline: float | None = None
    """When the window of the run ends."""
    items_before: int | None = None
    """If the crawl is finished: the number of items of the crawl before it, if known."""
    banned: list[Account] = []
    """The banned accounts of its sessions: workers do not log them in any more."""
    wanted: int | None = None
    """How many workers the crawl should have, if asked for."""

    @property
    def crawl(self) -> str:
        """The crawl's name."""
        return self.stats.crawl

    @property
    def failed_tries(self) -> int:
        """Tries that failed: those that were retried, and the last ones of dead tasks."""
        return self.stats.retries + self.stats.dead

    @property
    def eta_s(self) -> float | None:
        """How long the rest will take at the recent rate. None if not known."""
        return remaining_s(self.stats)

    @property
    def concentration(self) -> float:
        """The share of failed tries that the `FEW_HOSTS` worst hosts have."""
        return concentration(self.stats, self.failing)

    @property
    def failing_share(self) -> float:
        """The share of all tries that these few hosts have."""
        tries = self.stats.done + self.failed_tries
        theirs = sum(host.done + host.failed for host in self.failing[:FEW_HOSTS])
        return min(theirs / tries, 1.0) if tries else 0.0


class Survey(msgspec.Struct, kw_only=True, frozen=True):
    """Samples of all crawls that are under way or ended lately, and the leader."""

    at: float
    leader: Leader | None
    samples: list[Sample] = []
    left_out: int = 0
    """How many crawls were left out because of `MAX_CRAWLS`."""


async def survey(frontier: QueriesAndNotes, now: float, *, busiest: bool = False) -> Survey:
    """Sample every crawl that is under way or ended lately. Costs the same however large they are.
    `busiest`: include the hosts with the most work left."""
    leader = await frontier.notes.leader()
    runs = {run.crawl: run for run in await under_way(frontier.notes)}
    crawls = [stats for stats in await frontier.crawls() if is_shown(stats, now)]
    crawls.sort(key=lambda stats: stats.state.over)
    banned = await _banned(frontier, crawls[:MAX_CRAWLS])
    samples = [
        await _sample(frontier, stats, runs.get(stats.crawl), now, banned, busiest=busiest)
        for stats in crawls[:MAX_CRAWLS]
    ]
    return Survey(at=now, leader=leader, samples=samples, left_out=max(len(crawls) - MAX_CRAWLS, 0))


def is_shown(stats: Stats, now: float) -> bool:
    """Whether a crawl is under way or ended lately."""
    return not stats.state.over or now - (stats.finished_at or 0.0) < SHOWN_AFTER_END_S


async def _sample(
    frontier: QueriesAndNotes,
    stats: Stats,
    run: Run | None,
    now: float,
    banned: Mapping[str, list[Account]],
    *,
    busiest: bool,
) -> Sample:
    crawl = stats.crawl
    try:
        return Sample(
            at=now,
            stats=stats,
            workers=await frontier.workers(crawl),
            failing=await frontier.hosts(crawl, HOSTS, HostOrder.FAILING),
            busiest=await frontier.hosts(crawl, HOSTS, HostOrder.BUSIEST) if busiest else [],
            schedule=schedule_of(crawl),
            deadline=run.deadline if run else None,
            items_before=await _items_before(frontier, stats),
            banned=[account for name in stats.rules.sessions for account in banned[name]],
        )
    except UnknownCrawl:  # It was forgotten this very moment.
        return Sample(at=now, stats=stats)


async def _banned(frontier: QueriesAndNotes, crawls: Sequence[Stats]) -> dict[str, list[Account]]:
    """The banned accounts by group. Crawls may share groups, so each group is only read once."""
    names = {name for stats in crawls for name in stats.rules.sessions}
    return {
        name: [account for account in await frontier.accounts(name) if account.state.is_banned]
        for name in names
    }


async def _items_before(frontier: QueriesAndNotes, stats: Stats) -> int | None:
    """The number of items of the crawl before this one: the last finished run of its schedule, or
    else the crawl that its rules name as the previous one."""
    if stats.state is not CrawlState.FINISHED:
        return None
    if schedule := schedule_of(stats.crawl):
        runs = await history(frontier.notes, schedule)
        return next((run.items for run in runs if _came_before(run, stats.crawl)), None)
    if stats.rules.previous is None:
        return None
    try:
        return (await frontier.stats(stats.rules.previous)).items
    except UnknownCrawl:
        return None


def _came_before(run: Run, crawl: str) -> bool:
    return run.state == CrawlState.FINISHED and run.crawl < crawl
