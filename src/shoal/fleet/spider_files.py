"""Finds all spiders that a folder, a file or a module defines.

A file of a folder is imported only if it defines a class with a base, so that scripts that happen
to be there are not run. A file that cannot be imported is reported as a fault; the others are still
read.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.errors import ConfigError
from shoal.fleet.target import load_all, without_bases
from shoal.spider.spider import Spider

MAX_FILES = 5_000
"""How many Python files of a folder are looked at."""
PACKAGE = "__init__.py"
_OF_ENVIRONMENTS = "pyvenv.cfg"
_NOT_SPIDERS = ("test_", "conftest.py", "setup.py")


class FoundSpider(msgspec.Struct, frozen=True):
    """A spider, and the target by which commands load it."""

    target: str
    spider: type[Spider]


class Fault(msgspec.Struct, frozen=True):
    """Why a place could not be read, or not all of it."""

    place: str
    message: str

    @property
    def told(self) -> str:
        """In one line, with the place."""
        in_full = str(Path(self.place).resolve())
        if self.message.startswith((in_full, self.place)):
            return self.place + self.message.removeprefix(in_full).removeprefix(self.place)
        return f"{self.place}: {self.message}"


class FoundSpiders(msgspec.Struct):
    """The spiders found in a place, in the order of their targets, and what could not be read."""

    spiders: list[FoundSpider] = []
    faults: list[Fault] = []

    @property
    def targets(self) -> list[str]:
        """The targets by which commands load these spiders."""
        return [found.target for found in self.spiders]


def spiders_in(place: str) -> FoundSpiders:
    """All spiders of a folder, a file or a module. Raises ConfigError if there is no such place."""
    found = _in_any(place)
    worth = set(without_bases(each.spider for each in found.spiders))
    found.spiders = [each for each in found.spiders if each.spider in worth]
    return found


def _in_any(place: str) -> FoundSpiders:
    path = Path(place)
    if path.is_dir():
        return _in_folder(path)
    if path.exists() or place.endswith(".py"):
        return FoundSpiders(_in_place(place))
    if not all(part.isidentifier() for part in place.split(".")):
        raise ConfigError(f"no such file, folder or module: {place}")
    return FoundSpiders(_in_place(place))


def _in_folder(folder: Path) -> FoundSpiders:
    found = FoundSpiders()
    for number, file in enumerate(_python_files(folder)):
        if number == MAX_FILES:
            message = f"more than {MAX_FILES:,} Python files: the rest is not looked at"
            found.faults.append(Fault(str(folder), message))
            break
        try:
            if _may_have_spiders(file):
                found.spiders += _in_place(_place_of(file))
        except ConfigError as error:
            found.faults.append(Fault(str(file), str(error)))
    return found


def _python_files(folder: Path) -> Iterator[Path]:
    """The Python files that may define spiders, sorted. Skips tests, hidden folders and virtual
    environments."""
    for at, folders, files in os.walk(folder):
        here = Path(at)
        folders[:] = sorted(name for name in folders if _is_worth_a_look(here / name))
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith(_NOT_SPIDERS):
                yield here / name


def _is_worth_a_look(folder: Path) -> bool:
    hidden = folder.name.startswith((".", "__"))
    return not hidden and not (folder / _OF_ENVIRONMENTS).exists()


def _may_have_spiders(file: Path) -> bool:
    """Whether a file defines a class with a base. Raises ConfigError if it is not valid Python."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise ConfigError(f"{file}:{error.lineno or 1}: {error.msg}") from None
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    return any(isinstance(node, ast.ClassDef) and node.bases for node in ast.walk(tree))


def _place_of(file: Path) -> str:
    """How a target names this file: by its path, or as a module (`shops.books`) if it belongs to a
    package in the working folder, because its relative imports work only then."""
    if not (file.parent / PACKAGE).exists():
        return str(file)
    parts = list(Path(os.path.relpath(file)).with_suffix("").parts)
    outer = [Path(*parts[:depth]) / PACKAGE for depth in range(1, len(parts))]
    if not all(part.isidentifier() for part in parts) or not all(map(Path.exists, outer)):
        return str(file)
    return ".".join(parts[:-1] if file.name == PACKAGE else parts)


def _in_place(place: str) -> list[FoundSpider]:
    return [FoundSpider(f"{place}:{spider.__name__}", spider) for spider in load_all(place)]
