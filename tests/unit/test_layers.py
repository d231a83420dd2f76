"""The layers: who may import whom. Read off the sources, imports inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal
from support.layers import LAYERS

SOURCES = Path(shoal.__file__).parent

ENTRANCES = {"__init__", "__main__", "urls"}
"""Of the whole package: they may import anything, and nothing imports them. `urls` is an old
address that spiders of users import from."""

RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}


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
            case ast.ImportFrom(level=0, module=str(module)):
                found = [module]
            case ast.ImportFrom():
                found = ["shoal.(relative)"]
            case ast.Call(func=ast.Name(id=by_name) | ast.Attribute(attr=by_name)) if by_name in (
                "__import__",
                "import_module",
            ):
                found = [] if path.match("fleet/target.py") else ["shoal.(by name)"]
            case _:
                found = []
        for module in found:
            if module.split(".")[0] == "shoal":
                yield node.lineno, module  # type: ignore[attr-defined]


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
    ],
)
def test_what_goes_up_or_sideways_is_seen(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "page.py").write_text(text)
    monkeypatch.setattr(f"{__name__}.SOURCES", tmp_path)

    assert len(list(wrong_ways())) == 1
