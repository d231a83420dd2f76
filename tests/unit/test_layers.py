"""The layers: who may import whom. Read off the sources, imports inside functions included, and
modules that are named in a text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import shoal
from support.layers import LAYERS

SOURCES = Path(shoal.__file__).parent

ENTRANCES = {"__init__", "__main__", "urls"}
"""Of the whole package: they may import anything, and nothing imports them. `urls` is an old
address that spiders of users import from."""

RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

BY_NAME = {"__import__", "import_module", "resolve_name", "spec_from_file_location", "run_module"}
"""What imports a module whose name only the running program knows."""
MAY_BY_NAME = ("fleet/target.py", "cli/on_demand.py")
"""The spiders of users; commands, which are all of the layer that loads them."""
MAY_FIND = ("core/plugins.py",)
"""What others have installed: see decision 0040."""

NAMED_IN_TEXT = re.compile(r"shoal\.(\w+)(?:[.:]\w+)*")


def part_of(module: str) -> str:
    """`shoal.frontier.redis.shard` is of `frontier`; the package itself is `__init__`."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def sources() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCES.rglob("*.py")):
        yield path.relative_to(SOURCES).with_suffix("").parts[0], path


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """What of ours a file imports, wherever in it, with the lines."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(level=0, module="shoal", names=names):
                found = [f"shoal.{alias.name}" for alias in names]
            case ast.ImportFrom(level=0, module=str(module), names=names):
                found = [module, *_finders(path, [alias.name for alias in names])]
            case ast.ImportFrom():
                found = ["shoal.(relative)"]
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found = _finders(path, [name])
            case ast.Constant(value=str(text)):
                found = _modules_named(text)
            case _:
                found = []
        for module in found:
            if module.split(".")[0] == "shoal":
                yield node.lineno, module  # type: ignore[attr-defined]


def _finders(path: Path, names: Iterable[str]) -> list[str]:
    """What these names import, which cannot be read off the sources."""
    by_name = [] if any(map(path.match, MAY_BY_NAME)) else BY_NAME.intersection(names)
    finding = [] if path.match(*MAY_FIND) else {"entry_points"}.intersection(names)
    return [f"shoal.({name})" for name in (*by_name, *finding)]


def _modules_named(text: str) -> list[str]:
    """The module that a text is the name of: a child process may run it."""
    named = NAMED_IN_TEXT.fullmatch(text)
    return [text] if named and named[1] in RANK else []


def wrong_ways() -> Iterator[str]:
    for part, path in sources():
        if part in ENTRANCES:
            continue
        for line, module in imports(path):
            other = part_of(module)
            if other != part and RANK.get(other, -1) <= RANK[part]:
                yield f"{path.relative_to(SOURCES)}:{line} imports {module}"


def test_every_part_has_its_layer() -> None:
    assert {part for part, _ in sources()} - ENTRANCES == set(RANK)


def test_imports_go_down() -> None:
    assert list(wrong_ways()) == []


@pytest.mark.parametrize(
    "text",
    [
        "from shoal.frontier.port import Frontier",
        "import shoal.frontier",
        "def f():\n    from shoal.worker import report",
        "if TYPE_CHECKING:\n    from shoal.fleet.fleet import Fleet",
        "from shoal import cli",
        "from shoal import Spider",
        "from . import page",
        "import_module('shoal.' + name)",
        "from importlib import import_module as load",
        "from importlib.metadata import entry_points",
        "child_process('shoal.worker.worker')",
        "TARGET = 'shoal.demo.spider:ShopSpider'",
    ],
)
def test_what_goes_up_or_sideways_is_seen(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "page.py").write_text(text)
    monkeypatch.setattr(f"{__name__}.SOURCES", tmp_path)

    assert len(list(wrong_ways())) == 1
