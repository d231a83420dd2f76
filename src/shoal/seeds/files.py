"""Reads files of seeds: lines with URLs or JSON tasks, and CSV. Always streamed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError
from shoal.seeds.seeding import read_seed

CSV_SUFFIXES = frozenset({".csv", ".tsv"})

_NUMBERS = ("priority", "max_retries", "depth")
_FLAGS = frozenset({"body_is_base64", "dont_filter"})
_FIELDS = frozenset({"url", "job_type", "method", "body", "chain", *_FLAGS, *_NUMBERS})
_YES = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


class Seed(NamedTuple):
    """The seed on one line: a task, or the reason why it is not valid."""

    line: int
    task: Task | BadUrl


def read_lines(lines: Iterable[bytes]) -> Iterator[Seed]:
    """Read one URL or one JSON task per line. Empty lines are skipped."""
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            yield Seed(number, _tried(text))


def _tried(text: bytes) -> Task | BadUrl:
    try:
        return read_seed(text)
    except BadUrl as error:
        return error


def read_csv(lines: Iterable[bytes], *, delimiter: str = ",") -> Iterator[Seed]:
    """Read CSV with a header. Raises ConfigError if the header is not valid.

    The column `url` is required. `handler`, `priority`, `meta` (a JSON object) and other fields of
    a task set these; every other column becomes an entry of `meta`.
    """
    rows = csv.reader(_decoded(lines), delimiter=delimiter)
    columns = _columns(rows)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield Seed(rows.line_num, BadUrl(f"not CSV: {error}"))
            continue
        if row is None:
            return
        if any(cell.strip() for cell in row):
            yield Seed(rows.line_num, _task_of(columns, row))


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines):
        # A line that is not UTF-8 is detected when its task is made, so that only it is skipped.
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix("\ufeff") if number == 0 else text


def _columns(rows: Iterator[list[str]]) -> list[str]:
    try:
        names = [name.strip() for name in next(rows, [])]
    except csv.Error as error:
        raise ConfigError(f"not CSV: {error}") from None
    names = ["job_type" if name == "handler" else name for name in names]
    if "url" not in names:
        raise ConfigError("the first line of a CSV file must name its columns, `url` among them")
    return names


def _task_of(columns: list[str], row: list[str]) -> Task | BadUrl:
    if len(row) > len(columns):
        return BadUrl(f"{len(row)} cells for {len(columns)} columns")
    cells = {name: cell for name, cell in zip(columns, row, strict=False) if cell.strip()}
    try:
        for cell in cells.values():
            cell.encode()
        return msgspec.convert(_fields_of(cells), Task, strict=False)
    except UnicodeEncodeError:
        return BadUrl("not UTF-8")
    except (msgspec.MsgspecError, ValueError) as error:
        return BadUrl(str(error))


def _fields_of(cells: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {name: cells[name] for name in cells.keys() & _FIELDS}
    for flag in _FLAGS & fields.keys():
        fields[flag] = _YES[fields[flag].strip().lower()]
    own = {name: cell for name, cell in cells.items() if name not in _FIELDS and name != "meta"}
    given = msgspec.json.decode(cells["meta"], type=dict[str, Any]) if "meta" in cells else {}
    if own or given:
        fields["meta"] = own | given
    return fields
