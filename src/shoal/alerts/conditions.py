"""Finds what is wrong with a crawl: one pure function for each alert.

Each function gets a crawl as it is now, the points of its last two hours, and the limits. It
returns a finding, or None if all is well. states.py decides how long a finding must last and which
routes are notified. To add an alert, write a function and name it in `CONDITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from shoal.alerts.limits import Limits
from shoal.coordinator.lateness import lateness
from shoal.core.policy import parse_duration
from shoal.frontier.values import CrawlState
from shoal.insight.history import HOUR_S, Point
from shoal.insight.sample import Sample
from shoal.insight.status import FEW_HOSTS

RECENT_S = 900.0
"""Shares of tries and requests are measured over this time."""
MIN_TRIES = 50
"""Shares of fewer tries or requests say nothing."""
MIN_PAGES = 100
MIN_ITEMS = 10
MIN_WORKERS = 3
MIN_SPEED = 0.5
"""Pages per second. If the median worker is slower than this, it is chance which one is slow."""
HALF = 0.5
"""If a few hosts had more than this share of all tries, it is no wonder that they have most of the
failures."""
NAMED = 3
"""How many accounts are named in a message."""
GROWTH = 1.1
"""A queue counts as growing if it is longer than before by at least this factor."""


class View(msgspec.Struct, frozen=True):
    """What a condition gets to look at."""

    sample: Sample
    points: Sequence[Point]
    """In order; the last one is the sample's."""
    limits: Limits
    last: Sample | None = None
    """The crawl at the look before. None at the first look."""

    def before(self, seconds: float) -> Point | None:
        """The newest point that is at least this old. None if there is none."""
        then = self.sample.at - seconds
        past = [point for point in self.points if point.at <= then]
        return past[-1] if past else None

    def recent(self) -> tuple[Point, Point] | None:
        """The first and the last point of the last 15 minutes. None if there are not two."""
        inside = [point for point in self.points if point.at >= self.sample.at - RECENT_S]
        return (inside[0], inside[-1]) if len(inside) > 1 else None


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong: a measured value, the limit that it passed, and a message."""

    value: float
    limit: float
    text: str


Check = Callable[[View], Finding | None]


class Condition(msgspec.Struct, frozen=True):
    """An alert: its name, what it means, and the function that finds it."""

    name: str
    meaning: str
    check: Check
    holds_s: Callable[[Limits], float] = lambda limits: 0.0
    """How long it must last before routes are notified."""
    passes: bool = True
    """Whether it can pass. If not, because it reports an event, routes get no message that it is
    resolved."""


def queue_grows(view: View) -> Finding | None:
    """The queue grows while the ETA rises: it may never end."""
    seconds = parse_duration(view.limits.growing)
    then, now = view.before(seconds), view.points[-1]
    if not _is_running(view) or then is None or then.eta_s is None or now.eta_s is None:
        return None
    if now.eta_s <= then.eta_s or now.remaining <= max(then.remaining * GROWTH, MIN_PAGES):
        return None
    grown = f"{then.remaining:,} to {now.remaining:,} tasks in {view.limits.growing}"
    return Finding(now.remaining, then.remaining, f"its queue grew from {grown}, and its ETA rises")


def failures(view: View) -> Finding | None:
    """Too many tries fail."""
    recent = view.recent()
    if recent is None:
        return None
    failed = max(recent[1].failed_tries - recent[0].failed_tries, 0)
    ended = failed + max(recent[1].done - recent[0].done, 0)
    text = "{share:.0%} of {ended:,} tries failed lately"
    return _share(failed, ended, view.limits.failures, text)


def blocked(view: View) -> Finding | None:
    """Hosts refuse to serve us."""
    recent = view.recent()
    if recent is None:
        return None
    refused = recent[1].blocked - recent[0].blocked
    text = "{share:.0%} of {ended:,} requests were blocked lately"
    return _share(refused, recent[1].sent - recent[0].sent, view.limits.blocked, text)


def concentration(view: View) -> Finding | None:
    """A few hosts make most failures: it is them and not us."""
    sample, recent = view.sample, view.recent()
    few = sample.failing[:FEW_HOSTS]
    is_recent = recent is not None and recent[1].failed_tries > recent[0].failed_tries
    if not is_recent or sample.failed_tries < MIN_TRIES or sample.failing_share > HALF:
        return None
    share, limit = sample.concentration, view.limits.concentration
    if share <= limit:
        return None
    names = ", ".join(host.host for host in few)
    return Finding(share, limit, f"{share:.0%} of its failures are those of {names}")


def only_duplicates(view: View) -> Finding | None:
    """Pages lead only to pages that are known, and there are no items: a trap."""
    then, now = view.before(HOUR_S), view.points[-1]
    if not _is_running(view) or then is None or now.items > then.items:
        return None
    known, new = now.duplicates - then.duplicates, now.added - then.added
    text = "{share:.0%} of {ended:,} links of the last hour were known already, and it has no items"
    return _share(known, known + new, view.limits.duplicates, text)


def stalled(view: View) -> Finding | None:
    """There is work and there are workers, but nothing happens."""
    seconds = parse_duration(view.limits.stalled)
    then, now = view.before(seconds), view.points[-1]
    if not _has_work(view) or not view.sample.workers or then is None:
        return None
    since = [point for point in view.points if point.at >= then.at]
    if (then.sent, then.tried) != (now.sent, now.tried) or not all(p.workers for p in since):
        return None
    text = f"nothing was fetched for {view.limits.stalled}, and {_waiting(now)}"
    return Finding(now.at - then.at, seconds, text)


def no_workers(view: View) -> Finding | None:
    """There is work but no worker."""
    if not _has_work(view) or view.sample.workers:
        return None
    return Finding(0, 1, f"no worker is running, and {_waiting(view.points[-1])}")


def slow_worker(view: View) -> Finding | None:
    """One worker is far slower than the others."""
    workers = view.sample.workers
    if not _has_work(view) or len(workers) < MIN_WORKERS:
        return None
    middle = median(worker.pages_per_s for worker in workers)
    slowest = min(workers, key=lambda worker: worker.pages_per_s)
    limit = middle * view.limits.slow_worker
    if middle < MIN_SPEED or slowest.pages_per_s >= limit:
        return None
    speeds = f"{slowest.pages_per_s:.1f} pages/s, the median has {middle:.1f}"
    return Finding(slowest.pages_per_s, limit, f"worker {slowest.worker} is slow: {speeds}")


def slow_store(view: View) -> Finding | None:
    """Results take long to store, or many pages wait to be stored."""
    fullest = max(view.sample.workers, key=lambda worker: worker.backlog, default=None)
    if fullest is not None and fullest.backlog > view.limits.backlog:
        text = f"{fullest.backlog:,} pages of worker {fullest.worker} wait to be stored"
        return Finding(fullest.backlog, view.limits.backlog, text)
    mean_s, limit = _mean_save_s(view), parse_duration(view.limits.slow_store)
    if mean_s is None or mean_s <= limit:
        return None
    return Finding(mean_s, limit, f"results take {mean_s:.1f} s to store")


def _mean_save_s(view: View) -> float | None:
    """The mean time to store a batch since the look before, for the workers that were there then.
    None if there was no batch."""
    then = {worker.worker: worker.saves for worker in view.last.workers} if view.last else {}
    pairs = [(then[w.worker], w.saves) for w in view.sample.workers if w.worker in then]
    saves = sum(now.count - before.count for before, now in pairs)
    seconds = sum(now.total_s - before.total_s for before, now in pairs)
    return seconds / saves if saves > 0 else None


def late(view: View) -> Finding | None:
    """The run is not done within its window, or will not be."""
    sample = view.sample
    news = lateness(sample.deadline, sample.stats, sample.at)
    if news is None or sample.deadline is None:
        return None
    end = sample.at + (sample.eta_s or 0.0)
    return Finding(end, sample.deadline, news)


def dead(view: View) -> Finding | None:
    """Too many pages are dead."""
    stats = view.sample.stats
    text = "{share:.1%} of {ended:,} pages are dead"
    return _share(stats.dead, stats.tried, view.limits.dead, text, MIN_PAGES)


def fewer_items(view: View) -> Finding | None:
    """The crawl found far fewer items than the one before it."""
    stats, before = view.sample.stats, view.sample.items_before
    if before is None or before < MIN_ITEMS:
        return None
    limit = before * view.limits.fewer_items
    if stats.items >= limit:
        return None
    return Finding(stats.items, limit, f"it found {stats.items:,} items, {before:,} the last time")


def banned_accounts(view: View) -> Finding | None:
    """Accounts are banned: their logins failed so often that no worker tries them any more."""
    accounts = view.sample.banned
    if not accounts:
        return None
    named = [f"{it.name}: {it.state.why}" if it.state.why else it.name for it in accounts[:NAMED]]
    if len(accounts) > NAMED:
        named.append(f"{len(accounts) - NAMED:,} more")
    many = f"{len(accounts):,} accounts are" if len(accounts) > 1 else "an account is"
    return Finding(len(accounts), 0, f"{many} banned ({'; '.join(named)})")


def _is_running(view: View) -> bool:
    return view.sample.stats.state is CrawlState.RUNNING


def _has_work(view: View) -> bool:
    return _is_running(view) and view.sample.stats.remaining > 0


def _waiting(point: Point) -> str:
    return f"{point.remaining:,} tasks wait" if point.remaining > 1 else "1 task waits"


def _share(
    part: int, whole: int, limit: float, text: str, fewest: int = MIN_TRIES
) -> Finding | None:
    if whole < fewest or part <= whole * limit:
        return None
    share = part / whole
    return Finding(share, limit, text.format(share=share, ended=whole))


CONDITIONS = (
    Condition("queue_grows", "the queue grows while the ETA rises", queue_grows),
    Condition("failures", "too many tries fail", failures),
    Condition("blocked", "hosts refuse too many requests", blocked),
    Condition("concentration", "a few hosts make most failures", concentration),
    Condition("only_duplicates", "only known links for an hour: a trap", only_duplicates),
    Condition("stalled", "there is work, and nothing happens", stalled),
    Condition(
        "no_workers",
        "there is work, and no worker",
        no_workers,
        lambda limits: parse_duration(limits.no_workers),
    ),
    Condition(
        "slow_worker", "a worker is far slower than the others", slow_worker, lambda limits: 600.0
    ),
    Condition(
        "slow_store", "the store is slow, or a backlog full", slow_store, lambda limits: 120.0
    ),
    Condition("late", "it will not be done within its window", late, lambda limits: 300.0),
    Condition("dead", "too many pages are dead", dead),
    Condition("banned_accounts", "logins fail until nobody tries again", banned_accounts),
    Condition("fewer_items", "far fewer items than the last time", fewer_items, passes=False),
)
"""The alerts on crawls. `no_leader` is not about a crawl: see watcher.py."""

NO_LEADER = Condition("no_leader", "no coordinator was leading", lambda view: None, passes=False)
ALL = {condition.name: condition for condition in (*CONDITIONS, NO_LEADER)}
"""Every alert by its name."""


def findings(view: View) -> dict[str, Finding]:
    """All that is wrong with a crawl, by the name of the alert."""
    found = {
        condition.name: condition.check(view)
        for condition in CONDITIONS
        if condition.name not in view.limits.off
    }
    return {name: finding for name, finding in found.items() if finding is not None}
