"""Shows crawls, hosts and workers as rows of text, in a terminal and in the dashboard."""

from __future__ import annotations

from shoal.coordinator.lateness import remaining_s
from shoal.core.policy import BLOCKED_STATUSES
from shoal.frontier.values import Host, Pulse, Stats
from shoal.insight.figures import duration, size
from shoal.insight.status import block_rate, duplicate_rate, elapsed_s
from shoal.insight.versions import versions_of
from shoal.spider.arguments import shown

KINDS_SHOWN = 5
CRAWL_COLUMNS = (
    *("crawl", "state", "total", "done", "dead", "left", "items", "pages/s", "time", "ETA"),
)
HOST_COLUMNS = ("host", "waiting", "in hand", "done", "failed", "latency", "next", "delay", "")
WORKER_COLUMNS = ("worker", "version", "in flight", "pages", "pages/s", "memory")


def eta(stats: Stats) -> str:
    """How long the rest will take. Empty if the crawl is over, ? if not known."""
    if stats.state.over:
        return ""
    left_s = remaining_s(stats)
    return "?" if left_s is None else duration(left_s)


def status_rows(stats: Stats, now: float) -> list[tuple[str, str]]:
    """The counters of a crawl, as names and values."""
    left_s = remaining_s(stats)
    rows = [
        ("state", str(stats.state)),
        (
            "added",
            f"{stats.added:,} ({stats.filtered:,} filtered; {duplicate_rate(stats):.1%} of links"
            " were duplicates)",
        ),
        ("queued", f"{stats.waiting:,} waiting, {stats.delayed:,} delayed"),
        ("in hand", f"{stats.leased:,}"),
        ("ended", f"{stats.done:,} done, {stats.dead:,} dead, {stats.dropped:,} dropped"),
        ("retries", f"{stats.retries:,}"),
        ("failures", failures(stats)),
        ("requests", _requests(stats)),
        ("lost leases", f"{stats.lost:,}"),
        ("items", f"{stats.items:,} saved, {stats.rejected:,} rejected"),
        ("read", bytes_read(stats)),
        ("speed", f"{stats.pages_per_s:,.1f} pages/s"),
        ("elapsed", duration(elapsed_s(stats, now))),
        ("ETA", duration(left_s) if left_s is not None else "?"),
        ("rate", f"{stats.rules.rate} per host, {stats.rules.concurrency_per_host} at once"),
    ]
    if stats.files:
        rows.insert(-5, ("files", f"{stats.files:,} stored"))
    if stats.rules.args:
        rows.insert(1, ("arguments", shown(stats.rules.args)))
    if stats.own_counts:
        rows.append(("counted", own_counts(stats)))
    if stats.bloom:
        share = f"{stats.rules.seen_error:.2%} of new URLs may be taken for known ones"
        rows.append(("known URLs", f"in a Bloom filter: {share}"))
    return rows


def failures(stats: Stats) -> str:
    """Failed tries by kind, the most frequent first."""
    ranked = sorted(stats.failures_by_kind.items(), key=lambda kind: -kind[1])
    shown = [f"{tries:,} {kind}" for kind, tries in ranked[:KINDS_SHOWN]]
    if others := sum(tries for _, tries in ranked[KINDS_SHOWN:]):
        shown.append(f"{others:,} of other kinds")
    return ", ".join(shown) or "none"


def own_counts(stats: Stats) -> str:
    """The spider's own counters."""
    return ", ".join(f"{times:,} {name}" for name, times in stats.own_counts.items())


def _requests(stats: Stats) -> str:
    statuses = ", ".join(map(str, sorted(BLOCKED_STATUSES)))
    sent = f"{stats.sent:,} sent, {block_rate(stats):.1%} blocked ({statuses})"
    if not stats.rules.previous:
        return sent
    return f"{sent}, {stats.unchanged:,} unchanged (304)"


def bytes_read(stats: Stats) -> str:
    """The bytes of bodies, decompressed, and those on the wire, headers included. For pages that
    Scrapy fetches, the latter are not known and left out."""
    on_wire = f", {size(stats.wire_bytes)} on the wire" if stats.wire_bytes else ""
    return f"{size(stats.body_bytes)}{on_wire}"


def worker_row(pulse: Pulse) -> tuple[str, ...]:
    """The cells of `WORKER_COLUMNS`."""
    return (
        pulse.worker,
        versions_of(pulse),
        f"{pulse.in_flight:,}",
        f"{pulse.pages:,}",
        f"{pulse.pages_per_s:,.1f}",
        size(pulse.rss_bytes),
    )


def host_row(host: Host, now: float) -> tuple[str, ...]:
    """The cells of `HOST_COLUMNS`."""
    wait_s = max(host.next_at - now, 0.0)
    delay_s = max(host.penalty_s, host.crawl_delay_s)
    return (
        host.host,
        *(f"{n:,}" for n in (host.waiting, host.leased, host.done, host.failed)),
        f"{host.latency_s * 1000:,.0f} ms" if host.latency_s else "",
        f"in {duration(wait_s)}" if wait_s else "now",
        duration(delay_s) if delay_s else "",
        "only probed: it keeps failing" if host.is_broken else "",
    )


def crawl_row(stats: Stats, now: float) -> tuple[str, ...]:
    """The cells of `CRAWL_COLUMNS`."""
    numbers = (stats.added, stats.done, stats.dead, stats.remaining, stats.items)
    return (
        stats.crawl,
        str(stats.state),
        *(f"{n:,}" for n in numbers),
        f"{stats.pages_per_s:,.1f}",
        duration(elapsed_s(stats, now)) if stats.started_at else "",
        eta(stats),
    )
