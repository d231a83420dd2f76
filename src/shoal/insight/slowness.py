"""Says in a few words why a crawl is slow at the moment, for its line of progress. Pure."""

from __future__ import annotations

from shoal.core.ledger import Cause
from shoal.fleet.looking import Glance
from shoal.frontier.values import CrawlState, Host, Stats
from shoal.insight.figures import counted, duration

IDLE = 0.5
"""Waiting is mentioned if it takes at least this share of the slots' time."""
PAUSED_S = 2.0
"""A host is called paused if its next turn is further away than this, and said to wait for the
broker if it has for longer. Rates usually mean less."""

_WAITS = (Cause.POLITE, Cause.STARVED, Cause.STORES, Cause.FRONTIER)


def why_slow(look: Glance) -> str:
    """What most slots wait for. Empty if they are busy, or if the reason is not known."""
    if look.stats.state is not CrawlState.RUNNING:
        return ""
    if look.awaited:
        is_results = "results store" in look.awaited
        return f"waiting for {look.store if is_results else f'the {look.awaited[0]}'}"
    if look.slots.share(*_WAITS) < IDLE:
        return ""
    if look.stats.missing:
        return missing_tasks(look.stats)
    cause = max(_WAITS, key=look.slots.of)
    if cause is Cause.STORES:
        return f"waiting for {look.store}"
    if cause is Cause.FRONTIER:
        return "waiting for the frontier"
    return _too_early(look) if cause is Cause.POLITE else _too_little(look)


def missing_tasks(stats: Stats) -> str:
    return f"{counted(stats.missing, 'task is', 'tasks are')} missing in the broker"


def _too_early(look: Glance) -> str:
    """The reason if tasks wait, but may not be sent yet."""
    hosts = [host for host in look.hosts if host.waiting]
    if not hosts:  # What the slots waited for may be over: then only retries are left.
        return _held_back(look) if look.stats.waiting else _too_little(look)
    paused = [host for host in hosts if host.is_broken or _wait_s(host, look) > PAUSED_S]
    dry = [host for host in hosts if host.dry_s > PAUSED_S]
    free = [host for host in hosts if host not in paused and host not in dry]
    if not free:
        return "waiting for the broker" if dry else _first_paused(paused, look)
    if look.stats.rules.rate == "none":
        limit = f"{look.stats.rules.concurrency_per_host} at once"
        return f"{_named(free, 'busy')} ({limit})"
    return f"{_named(free, 'at {} rate')} ({look.stats.rules.rate})"


def _named(hosts: list[Host], how: str) -> str:
    if len(hosts) == 1:
        return f"{hosts[0].host} {how.format('its')}"
    return f"all hosts {how.format('their')}"


def _first_paused(hosts: list[Host], look: Glance) -> str:
    first = _paused(min(hosts, key=lambda host: host.next_at), look)
    return first + (f", and {counted(len(hosts) - 1, 'other')}" if len(hosts) > 1 else "")


def _paused(host: Host, look: Glance) -> str:
    if host.is_broken:
        return f"{host.host} keeps failing: only probed"
    wait = duration(_wait_s(host, look))
    if host.penalty_s <= host.crawl_delay_s:
        return f"{host.host} waits {wait}" + (" (Crawl-delay)" if host.crawl_delay_s else "")
    kinds = host.failures_by_kind
    after = f" after {max(kinds, key=lambda kind: kinds[kind])}" if kinds else ""
    return f"{host.host} paused {wait}{after}"


def _wait_s(host: Host, look: Glance) -> float:
    return host.next_at - look.at


def _held_back(look: Glance) -> str:
    rules = look.stats.rules
    if rules.pools:
        return "waiting for exits"
    return "waiting for accounts" if rules.sessions else "each chain waits for its last task"


def _too_little(look: Glance) -> str:
    """The reason if no task waits that could be sent."""
    stats = look.stats
    if stats.waiting:
        return ""
    if stats.delayed:
        if asked_for := [h for h in look.hosts if h.penalty_s and _wait_s(h, look) > PAUSED_S]:
            return _first_paused(asked_for, look)
        return (
            f"{counted(stats.delayed, 'task waits until it', 'tasks wait until they')} may be sent"
        )
    return "the last pages are under way" if stats.leased else ""
