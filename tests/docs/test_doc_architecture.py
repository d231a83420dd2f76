"""docs/architecture.md is the tree: its layers, its packages, and every path that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.layers import LAYERS
from support.markdown import ROOT, blocks, prose, table_after

PAGE = ROOT / "docs" / "architecture.md"
SOURCES = ROOT / "src" / "shoal"
FEWEST_CHANGES = 20

_PATH = re.compile(r"`((?:[\w.]+/)*[\w.]+(?:\.(?:py|lua|sql|md)|/))`")
_STEP = re.compile(r"^(\d+)\. \*\*[^*]+\*\* \((.*?)\)", re.MULTILINE | re.DOTALL)


def place_of(path: str) -> Path:
    return (ROOT if path.startswith(("src/", "tests/", "docs/")) else SOURCES) / path


def paths_in(text: str) -> list[str]:
    return _PATH.findall(text)


@pytest.mark.parametrize("path", sorted(set(paths_in(prose(PAGE)))))
def test_every_path_exists(path: str) -> None:
    assert place_of(path).exists()


def test_layers_are_those_that_are_kept() -> None:
    (drawn,) = (block.text for block in blocks(PAGE) if block.language == "layers")
    assert [tuple(line.split(", ")) for line in drawn.splitlines()] == list(LAYERS)


def test_every_package_has_one_row() -> None:
    packages = [f"{path.parent.name}/" for path in SOURCES.glob("*/__init__.py")]
    assert sorted(row[0] for row in table_after(PAGE, "## Layers")) == sorted(packages)


def test_every_step_of_a_page_names_its_file() -> None:
    steps = _STEP.findall(prose(PAGE))
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert all(paths_in(files) for _, files in steps)


def test_changes_have_a_place_and_a_test() -> None:
    changes = table_after(PAGE, "## Where to change what")
    assert len(changes) >= FEWEST_CHANGES
    assert len({row[0] for row in changes}) == len(changes)
    for change, places, tests in changes:
        assert places.split(), change
        assert tests.startswith("tests/"), change
        assert all(place_of(path).exists() for path in (*places.split(), tests)), change
