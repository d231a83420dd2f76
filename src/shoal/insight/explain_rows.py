"""Shows what became of a URL, as rows of names and values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import msgspec

from shoal.core.files import FILE, StoredFile
from shoal.core.task import Task
from shoal.insight.explain import Explanation, ItemReading
from shoal.insight.figures import counted, duration, shortened, size
from shoal.insight.moments import shown_moment
from shoal.insight.sessions import exit_of_try, session_of
from shoal.results.port import PageLog

READINGS_SHOWN = 5

Row = tuple[str, str | list[str]]
"""A name, and a value of one line or several."""


def explanation_rows(explanation: Explanation) -> Iterator[Row]:
    """Everything that is known about one task, except its traceback."""
    yield "address", explanation.normal
    yield "verdict", explanation.verdict
    if (record := explanation.record) is not None:
        if not record.is_forgotten:
            yield from _task_rows(record.task)
        yield from (("found on", url) for url in explanation.found_on or ["it is a seed"])
        if record.losses:
            yield "lost", f"{record.losses} workers died with it"
    yield from ((_try_name(page), _try(page)) for page in explanation.tries)
    yield from (("archived", page.archived) for page in explanation.tries if page.archived)
    if (file := explanation.file) is not None:
        yield "file", _file(file)
    if (near := explanation.near) is not None:
        yield "nearly the same as", f"{near.url} ({counted(near.distance, 'bit')})"
    yield from _item_rows(explanation)
    yield from ((f"rejected {i.kind}", f"{i.reason}  {i.data}") for i in explanation.rejected)


def _task_rows(task: Task) -> Iterator[Row]:
    yield from request_rows(task)
    yield "handler", task.job_type
    yield "depth, priority", f"{task.depth}, {task.priority}"
    if task.on_failure:
        yield "on failure", task.on_failure
    if task.not_before is not None:
        yield "not before", shown_moment(task.not_before.timestamp())
    yield from (("redirected from", url) for url in task.redirects)


def request_rows(task: Task) -> list[Row]:
    """A row for the request, unless it is a plain GET, and one for the session, if there is one."""
    session = session_of(task)
    rows: list[Row] = [("session", session)] if session else []
    if task.method == "GET" and not task.body and (not task.dont_filter or task.job_type == FILE):
        return rows
    parts = [task.method]
    if task.body:
        what = "in base64 " if task.body_is_base64 else ""
        parts.append(f"body {what}{shortened(task.body)}")
    if task.dont_filter:
        parts.append("a copy of its own (dont_filter)")
    return [("request", ", ".join(parts)), *rows]


def _file(file: StoredFile) -> str:
    if not file.is_done:
        return f"{file.status}: {file.error}"
    return " · ".join([file.status, file.type, size(file.size), file.place])


def _item_rows(explanation: Explanation) -> Iterator[Row]:
    histories = chain(explanation.histories, repeat([]))
    for item, history in zip(explanation.items, histories, strict=False):
        gone = f"  gone since {shown_moment(item.gone_at)}" if item.gone_at is not None else ""
        yield f"item {item.kind}", f"{item.key}  {item.data.decode()}{gone}"
        if len(history) > 1:
            yield "history", _history(history)


def _history(readings: list[ItemReading]) -> list[str]:
    """The number of readings, and the last ones with a line each."""
    lines = [counted(len(readings), "reading")]
    if len(readings) > READINGS_SHOWN:
        lines[0] += f", the last {READINGS_SHOWN}:"
    for reading in readings[-READINGS_SHOWN:]:
        changes = [f"{name} {_short(a)} → {_short(b)}" for name, (a, b) in reading.changes.items()]
        lines.append(" · ".join([shown_moment(reading.scraped_at), *changes]))
    return lines


def _short(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode())


def _try_name(page: PageLog) -> str:
    return f"try {page.attempt} by {page.exit}" if page.exit else f"try {page.attempt}"


def _try(page: PageLog) -> str:
    answer = f"HTTP {page.status}" if page.status else "no answer"
    parts = [shown_moment(page.started_at), page.worker, answer, page.verdict]
    if page.body_bytes:
        parts.append(size(page.body_bytes))
    parts.append(duration(page.duration_s))
    if page.verdict == "done":
        parts.append(f"{counted(page.items, 'item')}, {counted(page.links, 'link')}")
    line = " · ".join([*parts, *([page.error] if page.error else [])])
    is_barred = exit_of_try(page.exit) and page.block and page.verdict == "retry"
    return f"{line} → not by this exit again" if is_barred else line
