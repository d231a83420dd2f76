"""Two versions of Shoal in one test: the one under test, and the next.

There is no released version yet, so the next is made from this one: a copy of its source in which a
task has one more field. To use a released version as the older of the two, unpack its wheel and
name its folder:

    python -m zipfile -e shoal-1.0.0-py3-none-any.whl older
    SHOAL_TEST_OLDER=$PWD/older make test-all
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import shoal
from shoal.frontier.redis.layout import LAYOUT
from shoal.frontier.sqlite.statements import SCHEMA
from shoal.version import __version__

NEXT = "999.0"
"""The number of the next version."""
SOURCE = Path(shoal.__file__).parent
OLDER = Path(os.environ.get("SHOAL_TEST_OLDER") or SOURCE.parent)
"""The folder of the older version."""
LAST = OLDER.joinpath("shoal", "version.py").read_text("utf-8").split('"')[-2]
"""The number of the older version."""


def next_version(folder: Path, *, form: bool = False) -> Path:
    """Make the next version in a folder. With `form`, it has another data format for crawls and
    files."""
    shutil.copytree(SOURCE, folder / "shoal", ignore=shutil.ignore_patterns("__pycache__"))
    frontier = folder / "shoal" / "frontier"
    _change(folder / "shoal" / "version.py", f'"{__version__}"', f'"{NEXT}"')
    task, field = folder / "shoal" / "core" / "task.py", "    retry: bool = False\n"
    _change(task, field, f'{field}    wish: str = ""\n')
    odd = "        or type(task) is not Task\n"
    _change(frontier / "redis" / "packing.py", odd, f"        or task.wish\n{odd}")
    if form:
        last = len(SCHEMA)
        _change(frontier / "redis" / "layout.py", f"LAYOUT = {LAYOUT}", f"LAYOUT = {LAYOUT + 1}")
        _change(
            frontier / "sqlite" / "statements.py", f"range(2, {last + 1})", f"range(2, {last + 2})"
        )
        schema = frontier / "sqlite" / "sql" / f"schema_{last + 1}.sql"
        schema.write_text("ALTER TABLE hosts ADD COLUMN wish TEXT\n", "utf-8")
    return folder


def run_by(version: Path) -> dict[str, str]:
    """Environment variables that make a process use the version in a folder."""
    return {"PYTHONPATH": str(version)}


def _change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(old) == 1, f"{file.name} is not what the next version is made of: {old!r}"
    file.write_text(text.replace(old, new), "utf-8")
