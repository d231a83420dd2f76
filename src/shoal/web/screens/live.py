"""The parts of a screen that refresh while it is open: texts, rows of tables, paths of charts.

A page is first rendered with them on the server. Then the browser polls for them as JSON and
replaces the texts in the page, so no HTML is ever sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.core import plaintext


class Cell(msgspec.Struct, omit_defaults=True):
    """A table cell that is more than a text."""

    t: str = ""
    """The text."""
    h: str = ""
    """The link, to an address of this server."""
    k: str = ""
    """The kind, a word that decides the colour."""
    p: str = ""
    """The path of a sparkline."""
    b: float | None = None
    """The filled share of a bar, from 0 to 1."""


AnyCell = str | Cell


class TableRows(msgspec.Struct, omit_defaults=True):
    """The rows of a table, and a note below it."""

    rows: list[list[AnyCell]] = []
    note: str = ""


class Live(msgspec.Struct):
    """All parts of a screen that refresh, by their names in the page."""

    text: dict[str, str] = {}
    kinds: dict[str, str] = {}
    """The kinds of texts: words that decide their colours."""
    paths: dict[str, str] = {}
    shares: dict[str, float] = {}
    tables: dict[str, TableRows] = {}


def table(rows: Iterable[Sequence[AnyCell]], most: int) -> TableRows:
    """A table of at most `most` rows, with a note if there are more."""
    found = list(rows)
    shown = [[_shown(cell) for cell in row] for row in found[:most]]
    is_cut = len(found) > most
    return TableRows(shown, f"The first {most:,} of {len(found):,}." if is_cut else "")


def capped(rows: Sequence[Sequence[AnyCell]], most: int) -> TableRows:
    """A table of at most `most` rows, from a query with the limit `most` + 1: if there are more,
    their number is not known."""
    made = table(rows[:most], most)
    made.note = f"Only the first {most:,} are shown." if len(rows) > most else ""
    return made


def with_note(made: TableRows, note: str) -> TableRows:
    """The table with a further note."""
    return TableRows(made.rows, " ".join(filter(None, (made.note, note))))


def _shown(cell: AnyCell) -> AnyCell:
    """The cell with its text in one line, without control characters. The text may be hostile."""
    if isinstance(cell, str):
        return plaintext.one_line(cell)
    return msgspec.structs.replace(cell, t=plaintext.one_line(cell.t))
