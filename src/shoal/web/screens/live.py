"""What of a screen changes while somebody looks: texts, rows of tables, paths of charts.

A page is rendered with it once. Then the browser asks for it again and again, and puts texts where
texts were: no HTML ever crosses the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.core import plaintext


class Cell(msgspec.Struct, omit_defaults=True):
    """A cell that is more than a text."""

    t: str = ""
    """Its text."""
    h: str = ""
    """Where it leads: an address of our own."""
    k: str = ""
    """A word that its colour goes by."""
    p: str = ""
    """The path of a small chart."""
    b: float | None = None
    """The share of a bar that is filled."""


AnyCell = str | Cell


class TableRows(msgspec.Struct, omit_defaults=True):
    """The rows of a table, and what is to be said below it."""

    rows: list[list[AnyCell]] = []
    note: str = ""


class Live(msgspec.Struct):
    """All that changes."""

    text: dict[str, str] = {}
    kinds: dict[str, str] = {}
    """Words that colours go by."""
    paths: dict[str, str] = {}
    shares: dict[str, float] = {}
    tables: dict[str, TableRows] = {}


def table(rows: Iterable[Sequence[AnyCell]], most: int) -> TableRows:
    """A table of at most so many rows, which says so if there are more."""
    found = list(rows)
    shown = [[_shown(cell) for cell in row] for row in found[:most]]
    is_cut = len(found) > most
    return TableRows(shown, f"The first {most:,} of {len(found):,}." if is_cut else "")


def capped(rows: Sequence[Sequence[AnyCell]], most: int) -> TableRows:
    """The same of rows that were asked for up to one too many: there are more, nobody knows how
    many."""
    made = table(rows[:most], most)
    made.note = f"Only the first {most:,} are shown." if len(rows) > most else ""
    return made


def also(made: TableRows, note: str) -> TableRows:
    """The same with one more note below it."""
    return TableRows(made.rows, " ".join(filter(None, (made.note, note))))


def _shown(cell: AnyCell) -> AnyCell:
    """Text from outside stays one line, and turns nothing around."""
    if isinstance(cell, str):
        return plaintext.one_line(cell)
    return msgspec.structs.replace(cell, t=plaintext.one_line(cell.t))
