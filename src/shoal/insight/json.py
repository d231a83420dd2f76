"""Turns answers into JSON, for `--json` and the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from shoal.coordinator.lateness import remaining_s
from shoal.coordinator.plan import Planned
from shoal.coordinator.runs import Run
from shoal.core.exits import PoolState
from shoal.core.records import RejectedItem, StoredItem
from shoal.feeds.feeder import Fed
from shoal.fleet.summary import Summary
from shoal.frontier.board import Leader
from shoal.frontier.values import Added, Host, Leased, Record, Repaired, Stats
from shoal.insight.explain import Explanation
from shoal.insight.sessions import group_json, session_of
from shoal.insight.status import (
    Snapshot,
    block_rate,
    duplicate_rate,
    elapsed_s,
    failure_concentration,
    spent_now,
    without_exit,
)
from shoal.insight.versions import at_work
from shoal.results.delivery import Delivered
from shoal.results.port import Pruned
from shoal.worker.login_checks import CheckedLogin

LANES_SHOWN = 10

Json = dict[str, Any]


def crawl_json(stats: Stats, now: float) -> Json:
    """A crawl's statistics, with derived figures."""
    fields: Json = msgspec.to_builtins(stats)
    return fields | {
        "total": stats.added,
        "failed": stats.dead,
        "remaining": stats.remaining,
        "pages_per_s": round(stats.pages_per_s, 2),
        "elapsed_s": round(elapsed_s(stats, now), 3),
        "eta_s": remaining_s(stats),
        "duplicate_rate": round(duplicate_rate(stats), 4),
        "block_rate": round(block_rate(stats), 4),
    }


def snapshot_json(seen: Snapshot, now: float) -> Json:
    """A crawl's statistics, with its workers and hosts."""
    return crawl_json(seen.stats, now) | {
        "late": seen.late,
        "traps": msgspec.to_builtins(seen.traps),
        "causes": msgspec.to_builtins(seen.causes),
        "failure_concentration": round(failure_concentration(seen), 4),
        "workers": msgspec.to_builtins(seen.workers),
        "versions": msgspec.to_builtins(at_work(seen.workers)),
        "hosts": hosts_json(seen.busiest),
        "slowest_hosts": hosts_json(seen.slowest),
        "failing_hosts": hosts_json(seen.failing),
        "pools": [pool_json(pool, now) for pool in seen.pools],
        "waiting_for_exits": without_exit(seen),
        "sessions": [group_json(group, now) for group in seen.sessions],
        "lanes": msgspec.to_builtins(seen.lanes[:LANES_SHOWN]),
        "feeds": msgspec.to_builtins(seen.feeds),
    }


def pool_json(pool: PoolState, now: float) -> Json:
    """A pool of exits and its cost."""
    return {
        "pool": pool.rules.name,
        "exits": pool.exits,
        "ready": pool.ready,
        "cooling": pool.cooling,
        "out": pool.out,
        "requests": pool.spent.requests,
        "wire_bytes": pool.spent.wire_bytes,
        "spent": round(spent_now(pool, now), 6),
        "spent_in_all": round(pool.spent.total, 6),
        "budget": pool.rules.budget or None,
        "budget_period_s": pool.rules.budget_period_s,
    }


def hosts_json(hosts: Sequence[Host]) -> list[Json]:
    """The state of some hosts."""
    return [msgspec.to_builtins(host) | {"broken": host.is_broken} for host in hosts]


def summary_json(summary: Summary) -> Json:
    """How a run of `shoal crawl` ended."""
    stats = summary.stats
    return crawl_json(stats, stats.finished_at or 0.0) | {
        "items_by_kind": summary.items,
        "gone": summary.gone,
        "causes": msgspec.to_builtins(summary.causes),
        "rejections": msgspec.to_builtins(summary.rejections),
        "finished_before": summary.finished_before,
        "seconds": round(summary.seconds, 3),
        "exit_code": summary.exit_code,
    }


def dead_task_json(record: Record) -> Json:
    """A task that failed for good."""
    return {
        "fingerprint": record.fingerprint.hex(),
        "url": record.task.url,
        "host": record.task.site,
        "kind": record.kind,
        "died_at": record.died_at,
        "reason": record.reason,
        "tries": record.task.retry_count,
        "handler": record.task.job_type,
        "session": session_of(record.task),
        "losses": record.losses,
        "traceback": record.detail,
        "task": record.task,
    }


def dead_tasks_at_json(records: Sequence[Record]) -> Json:
    """The dead tasks at one address: the first one, with the others under `others`."""
    first, *others = map(dead_task_json, records)
    return first | {"others": others}


def leased_json(leased: Leased) -> Json:
    """A leased task."""
    return msgspec.structs.asdict(leased) | {"fingerprint": leased.fingerprint.hex()}


def item_json(item: StoredItem) -> Json:
    """An item, as it is stored."""
    fields = msgspec.structs.asdict(item)
    return fields | {"fingerprint": item.fingerprint.hex(), "data": msgspec.Raw(item.data)}


def rejected_json(item: RejectedItem) -> Json:
    """An item that did not pass validation."""
    return msgspec.structs.asdict(item) | {"fingerprint": item.fingerprint.hex()}


def explanation_json(explanation: Explanation) -> Json:
    """What became of a URL: fingerprints and digests as hex, items as objects."""
    alone = msgspec.structs.replace(explanation, others=[])
    fields: Json = msgspec.to_builtins(alone, enc_hook=str, builtin_types=(bytes,))
    records = [fields["record"]] if fields["record"] else []
    for row in (*records, *fields["tries"], *fields["items"], *fields["rejected"]):
        row["fingerprint"] = explanation.fingerprint
    for row, page in zip(fields["tries"], explanation.tries, strict=True):
        row["digest"] = page.digest.hex()
    for row in fields["items"]:
        row["data"] = msgspec.json.decode(row["data"])
    if explanation.file is not None:
        file = explanation.file
        fields["file"] |= {"fingerprint": file.fingerprint.hex(), "sha256": file.sha256.hex()}
    fields["others"] = [explanation_json(other) for other in explanation.others]
    return fields


def repaired_json(crawl: str, repaired: Repaired) -> Json:
    """The result of `shoal seed --repair`."""
    return {"crawl": crawl, **msgspec.to_builtins(repaired)}


def seeded_json(crawl: str, added: Added, *, sitemaps: int, bad: int) -> Json:
    """What `shoal seed` added."""
    return msgspec.structs.asdict(added) | {"crawl": crawl, "sitemaps": sitemaps, "bad": bad}


def schedules_json(planned: Sequence[Planned], leader: Leader | None) -> Json:
    """All schedules, and who leads."""
    return {
        "leader": leader.holder if leader else None,
        "schedules": [_planned_json(schedule) for schedule in planned],
    }


def _planned_json(planned: Planned) -> Json:
    last = run_json(planned.last) if planned.last else None
    return msgspec.structs.asdict(planned) | {"last": last}


def run_json(run: Run) -> Json:
    """A run of a schedule, with all fields and the names that the notes use."""
    fields = {f.encode_name: getattr(run, f.name) for f in msgspec.structs.fields(run)}
    return fields | {"is_late": run.is_late}


def checked_login_json(checked: CheckedLogin) -> Json:
    """The result of a test login of an account."""
    return {
        "identity": checked.identity,
        "logged_in": checked.is_good,
        "left_alone": checked.is_left_alone,
        "requests": checked.requests,
        "seconds": checked.seconds,
        "why": checked.why or None,
    }


def pruned_json(before: datetime, pruned: Pruned) -> Json:
    """What `shoal results prune` removed, or would remove."""
    return {"before": before.isoformat(), **msgspec.structs.asdict(pruned)}


def delivered_json(delivered: Delivered, seconds: float) -> Json:
    """What `shoal drain` wrote to a store."""
    return msgspec.structs.asdict(delivered) | {"seconds": round(seconds, 3)}


def fed_json(crawl: str, fed: Fed, seconds: float) -> Json:
    """What `shoal feed` brought to a crawl."""
    return {"crawl": crawl} | msgspec.structs.asdict(fed) | {"seconds": round(seconds, 3)}
