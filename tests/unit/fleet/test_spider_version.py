"""The version of a spider: the same for the same files, another one when any of them changes."""

from __future__ import annotations

import importlib
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from shoal.demo.spider import ShopSpider
from shoal.fleet import spider_version as module
from shoal.fleet.spider_version import spider_version
from shoal.fleet.target import load
from shoal.spider.link_spider import spider_for

SPIDER = "from shoal import Spider\n\nclass Shop(Spider):\n    name = 'shop'\n"


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports leave nothing behind."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def version_in(folder: Path, target: str) -> str:
    """The version of a spider that is loaded in a folder, as a new process would load it."""
    before, path = set(sys.modules), [*sys.path]
    with chdir(folder):
        version = spider_version(load([target]))
    for name in set(sys.modules) - before:
        del sys.modules[name]
    sys.path[:] = path
    importlib.invalidate_caches()
    return version


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_file_has_that_of_its_content(tmp_path: Path) -> None:
    one, two, other = (
        written(tmp_path / name, {f"{name}.py": SPIDER + extra})
        for name, extra in (("one", ""), ("two", ""), ("other", "    rate = '2/s'\n"))
    )
    first = version_in(one, "one.py")
    assert len(first) == 8
    assert first == version_in(two, "two.py:Shop") == version_in(one, "one:Shop")
    assert first != version_in(other, "other.py")


def test_a_package_has_that_of_all_its_files(tmp_path: Path) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/prices.py": "VAT = 19\n",
        "shop/spiders/__init__.py": "",
        "shop/spiders/catalog.py": SPIDER,
    }
    target = "shop.spiders.catalog:Shop"
    first = version_in(written(tmp_path / "one", files), target)
    same = {**files, "notes.py": "", "shop/notes.txt": "x", "shop/.cache/a.py": "x"}
    assert version_in(written(tmp_path / "same", same), target) == first
    for name, change in enumerate(({"shop/prices.py": "VAT = 7\n"}, {"shop/more.py": ""})):
        assert version_in(written(tmp_path / f"{name}", files | change), target) != first


def test_what_was_said_counts() -> None:
    assert spider_version(ShopSpider, "2024-06-01") == "2024-06-01"


@pytest.mark.parametrize(
    "spider",
    [ShopSpider, spider_for(["http://a.example/"]), type("X", (), {"__module__": "no_module"})],
)
def test_our_own_and_those_without_a_file_have_none(spider: type) -> None:
    assert spider_version(spider) == ""


def test_no_more_is_read_than_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, {f"{name}.py": name * 10 for name in "abc"})
    monkeypatch.setattr(module, "MAX_BYTES", 15)
    first = module._hashed(module._in_folder(folder))
    written(tmp_path, {"c.py": "other", "b.py": "bbbbb and other"})
    assert module._hashed(module._in_folder(folder)) == first
    written(tmp_path, {"a.py": "other"})
    assert module._hashed(module._in_folder(folder)) != first
