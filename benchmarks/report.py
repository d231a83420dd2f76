"""Prints tables, and keeps figures in files: raw ones as JSON, tables as Markdown."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.site import OUT


def wide_console() -> Console:
    """A console that is wide enough for the tables, even if the output is a file."""
    return Console(width=None if sys.stdout.isatty() else 120)


def keep(name: str, figures: Mapping[str, Any], *tables: Table) -> Path:
    """Write figures to a new file, and tables as Markdown beside it. Returns the file's path."""
    OUT.mkdir(exist_ok=True)
    target = OUT / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    target.write_bytes(msgspec.json.encode(figures))
    if tables:
        target.with_suffix(".md").write_text("\n".join(map(_markdown, tables)))
    return target


def _markdown(table: Table) -> str:
    heads = [str(column.header) for column in table.columns]
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    return f"{table.title}\n\n" + markdown(heads, rows)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
