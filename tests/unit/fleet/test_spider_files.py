"""Finding all spiders of a folder, a file, a module or a package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.fleet.spider_files import spiders_in
from shoal.fleet.target import load

BOOKS = """
from shoal import Spider
class Books(Spider):
    start_urls = ["https://books.example/"]
class Anew(Books): pass
"""

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files into the working folder; imports leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write_file(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    yield write_file
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_with_several(write: Write) -> None:
    write("books.py", BOOKS)
    found = spiders_in("books.py")
    assert found.targets == ["books.py:Anew", "books.py:Books"]
    assert load([found.targets[1]]) is found.spiders[1].spider


BASE = """
from shoal import Spider
class Base(Spider):
    rate = "1/s"
"""


def test_what_spiders_have_in_common_is_none_to_run(write: Write) -> None:
    write("shops/common.py", BASE)
    derived = "class Books(Base):\n    start_urls = ['https://books.example/']\n"
    write("shops/books.py", f"from common import Base\n{derived}")
    write("shops/toys.py", BASE + derived.replace("Books", "Toys"))
    write("shops/fed.py", "from shoal import Spider\nclass Fed(Spider): pass\n")
    found = spiders_in("shops")
    assert found.targets == ["shops/books.py:Books", "shops/fed.py:Fed", "shops/toys.py:Toys"]
    assert load(["shops/toys.py"]).__name__ == "Toys"
    assert load(["shops/common.py:Base"]).__name__ == "Base"


def test_a_folder_and_what_is_broken_in_it(write: Write) -> None:
    write("shops/books.py", BOOKS)
    write("shops/more/toys.py", "from shoal import Spider\nclass Toys(Spider): pass\n")
    write("shops/broken.py", "from shoal import Spider\nclass Shop(Spider):\n    rate = = 1\n")
    write("shops/raises.py", "from shoal import Spider\nclass Shop(Spider): pass\n1 / 0\n")
    found = spiders_in("shops")
    targets = ["shops/books.py:Anew", "shops/books.py:Books", "shops/more/toys.py:Toys"]
    assert found.targets == targets
    broken, raises = found.faults
    assert (broken.place, broken.message) == (
        "shops/broken.py",
        "shops/broken.py:3: invalid syntax",
    )
    assert raises.place == "shops/raises.py"
    assert raises.message.endswith("raises.py:3: ZeroDivisionError: division by zero")


def test_a_spider_that_is_only_imported_is_listed_once(write: Write) -> None:
    write("shops/books.py", BOOKS)
    write("shops/extra.py", "from books import Books\nclass Extra(Books): pass\n")
    targets = ["shops/books.py:Anew", "shops/books.py:Books", "shops/extra.py:Extra"]
    assert spiders_in("shops").targets == targets


def test_a_package_with_relative_imports(write: Write) -> None:
    write("shops/__init__.py", "")
    write("shops/base.py", "from shoal import Spider\nclass Base(Spider): pass\n")
    write("shops/books.py", "from .base import Base\nclass Books(Base): pass\n")
    for place in ("shops", "./shops"):
        assert spiders_in(place).targets == ["shops.books:Books"]
    assert spiders_in("shops.books").targets == ["shops.books:Books"]
    assert load(["shops.books:Books"]).name == "books"


def test_what_cannot_have_spiders_is_not_run(write: Write) -> None:
    write("shops/books.py", BOOKS)
    for name in ("script.py", "test_books.py", ".hidden/one.py", "__pycache__/one.py"):
        write(f"shops/{name}", "raise SystemExit('was run')\n")
    write("shops/venv/pyvenv.cfg", "")
    write("shops/venv/lib.py", BOOKS)
    found = spiders_in("shops")
    assert (found.targets, found.faults) == (["shops/books.py:Anew", "shops/books.py:Books"], [])


def test_a_place_that_is_not_there(write: Write) -> None:
    write("broken.py", "1 / 0\n")
    for place, why in [
        ("nothing.py", "no such file: nothing.py"),
        ("nothing", "no module named 'nothing'"),
        ("no/thing", "no such file, folder or module: no/thing"),
        ("broken.py", "ZeroDivisionError"),
    ]:
        with pytest.raises(ConfigError, match=why):
            spiders_in(place)
