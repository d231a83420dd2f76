"""Crawls at one moment, as metrics, alerts and charts see them."""

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
"""A crawl that is over is looked at for so long. Then it is history."""
MAX_CRAWLS = 200
"""So many crawls are looked at: those that are under way first, then the newest."""
HOSTS = 10


class Sample(msgspec.Struct, kw_only=True, frozen=True):
    """A crawl at one moment."""

    at: float
    stats: Stats
    workers: list[Pulse] = []
    failing: list[Host] = []
    """The hosts that fail most."""
    busiest: list[Host] = []
    """The hosts with the most work left, if somebody asked for them."""
    schedule: str | None = None
    """The schedule that it is a run of."""
    deadline: float | None = None
    """When its window ends."""
    items_before: int | None = None
    """Of a crawl that is finished: the items of the one before it, where that is known."""
    banned: list[Account] = []
    """The accounts of its sessions that nobody logs in any more."""
    wanted: int | None = None
    """How many workers it should have, if somebody asked for that."""

    @property
    def crawl(self) -> str:
        """Its name."""
        return self.stats.crawl

    @property
    def failed_tries(self) -> int:
        """Tries that failed: those that were made again, and the last ones of what is dead."""
        return self.stats.retries + self.stats.dead

    @property
    def eta_s(self) -> float | None:
        """How long the rest will take at the recent rate. None while that cannot be said."""
        return remaining_s(self.stats)

    @property
    def concentration(self) -> float:
        """The share of failed tries that a few hosts have."""
        return concentration(self.stats, self.failing)

    @property
    def failing_share(self) -> float:
        """The share of all tries that these few hosts have."""
        tries = self.stats.done + self.failed_tries
        theirs = sum(host.done + host.failed for host in self.failing[:FEW_HOSTS])
        return min(theirs / tries, 1.0) if tries else 0.0


class Survey(msgspec.Struct, kw_only=True, frozen=True):
    """All crawls that somebody would look at, and who leads."""

    at: float
    leader: Leader | None
    samples: list[Sample] = []
    left_out: int = 0
    """Crawls beyond `MAX_CRAWLS`."""


async def survey(frontier: QueriesAndNotes, now: float, *, busiest: bool = False) -> Survey:
    """Look at every crawl that is not over, or not for long. Costs the same however large they
    are. `busiest`: look at the hosts with the most work as well."""
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
    """Whether a crawl is under way, or was until lately."""
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
    """The banned accounts of their groups, by name. Crawls share groups: each is looked at once."""
    names = {name for stats in crawls for name in stats.rules.sessions}
    return {
        name: [account for account in await frontier.accounts(name) if account.state.is_banned]
        for name in names
    }


async def _items_before(frontier: QueriesAndNotes, stats: Stats) -> int | None:
    """The items of the finished crawl before this one. Of a schedule, its last run; else the crawl
    that this one names."""
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
