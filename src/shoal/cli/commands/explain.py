"""shoal explain: what became of one URL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Annotated, Any

import msgspec
import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import STORES, CrawlName, JsonFlag, existing_stores, with_settings
from shoal.config import Settings
from shoal.fleet.stores import stores_at
from shoal.insight.explain import Explanation, ItemReading
from shoal.insight.explain import explain as explain_url
from shoal.insight.json import explanation_json
from shoal.results.port import PageLog
from shoal.runtime.eventloop import run

READINGS_SHOWN = 5


@with_settings(*STORES)
@examples(
    "shoal explain shop 'https://shop.example/product/17?utm_source=x'",
)
def explain(
    crawl: CrawlName,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address, in any spelling.")],
    options: dict[str, Any],
    json: JsonFlag = False,
) -> None:
    """Explain what became of a URL, from discovery to stored row."""
    explanation = run(_ask(existing_stores(options), crawl, url))
    if json:
        display.print_json(explanation_json(explanation))
    else:
        _show(explanation)


async def _ask(settings: Settings, crawl: str, url: str) -> Explanation:
    async with stores_at(settings, archive=False) as stores:
        return await explain_url(stores.frontier, stores.results, crawl, url)


def _show(explanation: Explanation) -> None:
    for task in (explanation, *explanation.others):
        _show_one(task)


def _show_one(explanation: Explanation) -> None:
    rows: list[display.Row] = [("address", explanation.normal), ("verdict", explanation.verdict)]
    record = explanation.record
    if record is not None:
        rows.extend(display.request_rows(record.task))
        rows.append(("handler", record.task.job_type))
        rows.append(("depth, priority", f"{record.task.depth}, {record.task.priority}"))
        rows.extend(("redirected from", url) for url in record.task.redirects)
        rows.extend(("found on", url) for url in explanation.found_on or ["it is a seed"])
        if record.losses:
            rows.append(("lost", f"{record.losses} workers died with it"))
    rows.extend((_try_name(page), _try(page)) for page in explanation.tries)
    rows.extend(("archived", page.archived) for page in explanation.tries if page.archived)
    if (near := explanation.near) is not None:
        bits = display.counted(near.distance, "bit")
        rows.append(("nearly the same as", f"{near.url} ({bits})"))
    rows.extend(_item_rows(explanation))
    rows.extend((f"rejected {i.kind}", f"{i.reason}  {i.data}") for i in explanation.rejected)
    display.out().print(display.facts(explanation.url, rows))
    if record is not None and record.detail:
        display.say_lines(record.detail)


def _item_rows(explanation: Explanation) -> Iterator[display.Row]:
    histories = chain(explanation.histories, repeat([]))
    for item, history in zip(explanation.items, histories, strict=False):
        gone = f"  gone since {_time(item.gone_at)}" if item.gone_at is not None else ""
        yield f"item {item.kind}", f"{item.key}  {item.data.decode()}{gone}"
        if len(history) > 1:
            yield "history", _history(history)


def _history(readings: list[ItemReading]) -> list[str]:
    """How many readings there are, and the last of them in a line each."""
    lines = [display.counted(len(readings), "reading")]
    if len(readings) > READINGS_SHOWN:
        lines[0] += f", the last {READINGS_SHOWN}:"
    for reading in readings[-READINGS_SHOWN:]:
        changes = [f"{name} {_short(a)} → {_short(b)}" for name, (a, b) in reading.changes.items()]
        lines.append(" · ".join([_time(reading.scraped_at), *changes]))
    return lines


def _short(value: Any) -> str:
    return display.shortened(msgspec.json.encode(value).decode())


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _try_name(page: PageLog) -> str:
    return f"try {page.attempt} by {page.exit}" if page.exit else f"try {page.attempt}"


def _try(page: PageLog) -> str:
    answer = f"HTTP {page.status}" if page.status else "no answer"
    parts = [_time(page.started_at), page.worker, answer, page.verdict]
    if page.body_bytes:
        parts.append(display.size(page.body_bytes))
    parts.append(display.duration(page.duration_s))
    if page.verdict == "done":
        parts.append(f"{page.items} items, {page.links} links")
    told = " · ".join([*parts, *([page.error] if page.error else [])])
    is_barred = page.exit and page.block and page.verdict == "retry"
    return f"{told} → not by this exit again" if is_barred else told
