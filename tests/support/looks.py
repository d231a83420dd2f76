"""Made-up crawls as `shoal advise` sees them: hosts with work, and workers that have done some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.ledger import SlotTime, Work
from shoal.frontier.values import Chain, CrawlState, Host, Pulse, Stats
from shoal.insight.advise.situation import Look, Situation, situation

NOW = 1_800_000_000.0
MINUTE_S = 60.0


def pulse(
    name: str = "a",
    *,
    pages: float = 120,
    slots: int = 8,
    latency_s: float = 0.2,
    main_s: float = 0.002,
    idle: str = "polite",
    **work: Any,
) -> Pulse:
    """A worker that has read `pages` pages in the last minute. Each took `main_s` of a core."""
    fetch, parse = pages * latency_s, pages * main_s
    rest = max(slots * MINUTE_S - fetch - parse, 0.0)
    lately = Work(
        seconds=MINUTE_S,
        pages=int(pages),
        ended=int(pages),
        slots=SlotTime(**({"fetch": fetch, "parse": parse} | {idle: rest})),
        fetches=int(pages),
        fetch_s=fetch,
        saves=60,
        save_s=work.pop("save_s", 0.5),
        finish_s=work.pop("finish_s", 0.5),
        wire_bytes=int(pages) * 50_000,
        main_s=parse,
        queued_s=work.pop("queued_s", 0.0),
        machine_s=work.pop("machine_s", 2 * parse),
        stolen_s=work.pop("stolen_s", 0.0),
    )
    machine: dict[str, Any] = {
        "cores": 4.0,
        "memory_bytes": 8_000_000_000,
        "rss_bytes": 100_000_000,
    }
    return Pulse(
        worker=name, host="laptop", pid=1, version="1", slots=slots, lately=lately, **machine | work
    )


def host(name: str = "shop.example", waiting: int = 1_000, **fields: Any) -> Host:
    """A host with `waiting` tasks left."""
    return Host(host=name, waiting=waiting, **{"latency_s": 0.2, "done": 500} | fields)


def refusing(name: str = "shop.example", waiting: int = 1_000, done: int = 500) -> Host:
    """A host that answers 429 now and then."""
    return host(
        name,
        waiting,
        done=done,
        failed=50,
        penalty_s=1.0,
        failures_by_kind={FailureKind.BLOCKED: 50},
    )


def look(
    hosts: Sequence[Host],
    workers: Sequence[Pulse] = (),
    *,
    chains: Sequence[Chain] = (),
    rules: Rules | None = None,
    **stats: Any,
) -> Look:
    """A crawl that has been running for some minutes."""
    waiting = sum(at.waiting for at in hosts) + sum(max(at.left - 1, 0) for at in chains)
    counts = {"waiting": waiting, "done": 500, "added": 500 + waiting}
    when = {"state": CrawlState.RUNNING, "started_at": NOW - 300}
    fields: dict[str, Any] = {"crawl": "shop"} | when | counts | stats
    made = Stats(
        rules=rules or Rules(rate="2/s"),
        created_at=NOW - 300,
        **fields,
    )
    return Look(at=NOW, stats=made, workers=list(workers), hosts=list(hosts), chains=list(chains))


def seen(
    hosts: Sequence[Host],
    workers: Sequence[Pulse] = (),
    *,
    before: Look | None = None,
    **more: Any,
) -> Situation:
    """The situation of such a crawl. If no workers are given, it has one."""
    return situation(look(hosts, workers or [pulse()], **more), before)
