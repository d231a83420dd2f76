"""The differences between two crawls, for people: the first changes and a line of counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec

from shoal.cli import display
from shoal.export.csv import cell
from shoal.insight.comparing import Compared
from shoal.insight.figures import shortened
from shoal.results.changes import Change, Changed

COLUMNS = ("", "kind", "key", "field", "before", "after")


async def show_changes(changes: AsyncIterator[Changed], limit: int) -> None:
    """Print a table of the first changes, and how many more there are."""
    shown: list[Changed] = []
    count = 0
    async for changed in changes:
        count += 1
        if count <= limit:
            shown.append(changed)
    if shown:
        display.print_folded(COLUMNS, [row for each in shown for row in _rows(each)])
    if count > limit:
        display.say(
            f"the first {limit:,} of {count:,}; --limit shows more, -o writes all to a file"
        )


def summary(done: Compared) -> str:
    """How many items differ, and how many do not."""
    counts = ", ".join(f"{n:,} {change}" for change, n in done.comparison.counts.items())
    return f"{counts}, {done.comparison.same:,} the same: {done.earlier} → {done.later}"


def _rows(changed: Changed) -> Iterator[tuple[str, ...]]:
    """A row for each field that differs; one row for an item that is new or gone."""
    first = (str(changed.change), changed.item.kind, shortened(changed.item.key))
    if changed.change is not Change.CHANGED:
        whole = shortened(msgspec.json.encode(changed.before or changed.after).decode())
        yield *first, "", *((whole, "") if changed.change is Change.GONE else ("", whole))
        return
    for name in changed.fields():
        values = (cell(changed.before.get(name)), cell(changed.after.get(name)))
        yield *first, shortened(name), *map(shortened, values)
        first = ("", "", "")
