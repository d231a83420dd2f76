"""The results of a tried page, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from shoal.core.files import FILE
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.task import DEFAULT_HANDLER
from shoal.frontier.values import Verdict
from shoal.insight.figures import counted
from shoal.workbench.links import NEW, Link
from shoal.workbench.one_page import Tried
from shoal.workbench.tracebacks import users_lines

MAX_ITEMS = 20
MAX_LINKS = 50
MAX_ALIKE = 5
"""How many tasks are shown for each reason why a crawl would not fetch them."""
MAX_SHOWN = 1_000
"""How many characters are shown of an item, or of the notes of a task."""

Json = dict[str, Any]


def tried_json(tried: Tried, source: str) -> Json:
    """All results as JSON."""
    report = tried.report
    outcome = report.outcome
    return {
        "url": tried.task.url,
        "handler": tried.task.job_type,
        "status": report.status,
        "from": source,
        "redirects": tried.hops,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "retry_in_s": round(outcome.retry_in_s, 3),
        "traceback": users_lines(outcome.detail),
        "items": [_item_json(item) for item in report.items],
        "rejected": [
            {"kind": item.kind, "reason": item.reason, "item": item.data}
            for item in report.rejected
        ],
        "tasks": [_link_json(link) for link in tried.links],
        "new": sum(link.is_new for link in tried.links),
    }


def _item_json(item: StoredItem) -> Json:
    return {"kind": item.kind, "key": item.key, "item": msgspec.json.decode(item.data)}


def _link_json(link: Link) -> Json:
    task = link.task
    return {
        "url": task.url,
        "fate": link.fate,
        "handler": task.job_type,
        "method": task.method,
        "priority": task.priority,
        "depth": task.depth,
        "meta": msgspec.to_builtins(task.meta),
    }


def headline(tried: Tried, source: str) -> str:
    """A line about the page that was read, and where it came from."""
    report = tried.report
    size = report.page.body_bytes if report.page is not None else 0
    status = f"HTTP {report.status}" if report.status is not None else "no answer"
    return f"{tried.task.url}: {status}, {size:,} bytes, from {source}"


def ending(tried: Tried) -> str:
    """Why the page could not be read, and what a crawl would do. Empty if it was read."""
    outcome = tried.report.outcome
    match outcome.verdict:
        case Verdict.DONE:
            return ""
        case Verdict.RETRY:
            return f"{outcome.reason} (a crawl would try it again in {outcome.retry_in_s:.0f} s)"
        case Verdict.DROPPED:
            return f"{outcome.reason} (a crawl would drop it)"
    return f"{outcome.reason} (the task would be dead)"


def item_rows(items: Sequence[StoredItem]) -> list[tuple[str, ...]]:
    """Rows of the first items, as they would be stored."""
    return [(item.kind, item.key, _cut(item.data.decode())) for item in items[:MAX_ITEMS]]


def rejected_rows(items: Sequence[RejectedItem]) -> list[tuple[str, ...]]:
    """Rows of the first rejected items, each with the reason."""
    return [(item.kind, item.reason, _cut(item.data)) for item in items[:MAX_ITEMS]]


def link_rows(links: Sequence[Link]) -> list[tuple[str, ...]]:
    """Rows of the first tasks that a crawl would fetch, then of a few others for each reason."""
    fates = dict.fromkeys([NEW, *(link.fate for link in links)])
    alike = {fate: [link for link in links if link.fate == fate] for fate in fates}
    shown = alike.pop(NEW)[:MAX_LINKS]
    for others in islice(alike.values(), MAX_LINKS):
        shown += others[:MAX_ALIKE]
    return [_link_row(link) for link in shown]


def _link_row(link: Link) -> tuple[str, ...]:
    task = link.task
    more = [] if task.method == "GET" else [task.method]
    if task.job_type == FILE:  # Its notes are internal.
        return link.fate, FILE, _cut(task.url), ""
    if task.priority:
        more.append(f"priority {task.priority}")
    if task.meta:
        more.append(_cut(msgspec.json.encode(task.meta).decode()))
    return link.fate, task.job_type or DEFAULT_HANDLER, _cut(task.url), ", ".join(more)


def gave_line(tried: Tried) -> str:
    """`product gave 1 item, 62 tasks: 40 new, 22 twice on this page`."""
    report = tried.report
    parts = [counted(len(report.items), "item")]
    if report.rejected:
        parts.append(f"{len(report.rejected):,} rejected")
    return f"{tried.task.job_type} gave {', '.join([*parts, _fates(tried.links)])}"


def _fates(links: Sequence[Link]) -> str:
    fates = Counter(link.fate for link in links)
    shown = ", ".join(f"{count:,} {fate}" for fate, count in fates.most_common())
    return f"{counted(len(links), 'task')}: {shown}" if links else "no tasks"


def cut_line(shown: int, total: int, what: str) -> str:
    """The line below a table that does not show everything. Empty if it does."""
    left = total - shown
    return f"  and {left:,} more {what} (--json shows all)" if left > 0 else ""


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
