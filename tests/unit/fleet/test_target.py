"""Targets: files, modules and URLs, and one clear line for every mistake."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shoal.errors import BadUrl, ConfigError
from shoal.fleet.target import load, spec_of
from shoal.spider.link_spider import LinkSpider
from shoal.spider.spider import Spider

ONE = """
from shoal import Item, Spider

class Product(Item, key="sku"):
    sku: str

class Shop(Spider):
    name = "shop"
"""
TWO = ONE + "class Other(Spider): pass\n"

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files into a folder that is the working folder; imports leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write_file(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return name

    yield write_file
    for name in set(sys.modules) - before:
        del sys.modules[name]


def mistake(*targets: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load(targets)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_file_with_one_spider(write: Write, tmp_path: Path) -> None:
    write("shop.py", ONE)
    spider = load(["shop.py"])
    assert spider.name == "shop"
    assert issubclass(spider, Spider)
    assert load(["shop.py:Shop"]) is load([str(tmp_path / "shop.py")]) is spider


def test_a_file_with_several_spiders_needs_a_class(write: Write) -> None:
    write("two.py", TWO)
    assert load(["two.py:Other"]).__name__ == "Other"
    assert mistake("two.py") == (
        "two.py has several spiders (Other, Shop):"
        " write two.py:Other (crawl --all runs all of them)"
    )


def test_only_spiders_defined_in_the_file_count(write: Write) -> None:
    write("base_of_shop.py", ONE)
    write("child.py", "from base_of_shop import Shop\nclass Child(Shop): pass\nAlias = Child\n")
    assert load(["child.py"]).__name__ == "Child"
    write("empty.py", "from base_of_shop import Shop\n")
    assert mistake("empty.py") == "empty.py has no Spider in it"
    assert load(["empty.py:Shop"]).__name__ == "Shop"


def test_a_file_is_not_run_as_a_script(write: Write) -> None:
    write("script.py", ONE + "if __name__ == '__main__': raise RuntimeError\n")
    assert load(["script.py"]).__name__ == "Shop"


def test_a_module(write: Write) -> None:
    write("shop_package/__init__.py", ONE)
    write("shop_package/spiders.py", ONE)
    assert load(["shop_package.spiders:Shop"]).__module__ == "shop_package.spiders"
    assert load(["shop_package:Shop"]).__module__ == "shop_package"


def test_what_shoal_raises_is_said_of_the_users_line(write: Write) -> None:
    write("rules.py", "from shoal import Follow\n\nFollow('a', callback='lamp')\n")
    said = "rules.py:3: TypeError: callback= is Scrapy's word: write handler="
    assert mistake("rules.py").endswith(said)


def test_urls() -> None:
    spider = load(["https://shop.example/a", "http://b.example"])
    assert issubclass(spider, LinkSpider)
    assert list(spider.start_urls) == ["https://shop.example/a", "http://b.example"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("none.py", "no such file: none.py"),
        ("none.py:Shop", "no such file: none.py"),
        ("folder", "folder is a folder, not a spider (crawl --all runs all that are in it)"),
        ("folder.py", "folder.py is a folder, not a spider (crawl --all runs all that are in it)"),
        ("notes.txt", "notes.txt is not a .py file"),
        ("good.py:None_", "good.py has no class 'None_'"),
        ("good.py:Product", "good.py:Product is not a Spider"),
        ("good.py:number", "good.py:number is not a Spider"),
        ("no_such_module:Shop", "no module named 'no_such_module'"),
        ("no_such.module:Shop", "no module named 'no_such'"),
        ("json.no_such:Shop", "no module named 'json.no_such'"),
        ("json:loads", "json:loads is not a Spider"),
        ("json:Shop", "json has no class 'Shop'"),
    ],
)
def test_a_wrong_target(write: Write, target: str, expected: str) -> None:
    write("folder/x.txt", "")
    write("folder.py/x.txt", "")
    write("notes.txt", "")
    write("good.py", ONE + "number = 5\n")
    assert mistake(target) == expected


@pytest.mark.parametrize(
    "target", ["", ":", "shop.example", "json", "a b:C", "x:", ":Shop", ".a:A", "\0"]
)
def test_what_is_no_target_says_what_is(target: str) -> None:
    assert "write file.py, file.py:Class, package.module:Class, scrapy:SPIDER or" in mistake(target)


def test_no_target() -> None:
    assert mistake().startswith("no target")


def test_several_spiders_or_a_mix(write: Write) -> None:
    write("shop.py", ONE)
    assert (
        mistake("shop.py", "shop.py") == "one spider at a time, or only URLs; not shop.py shop.py"
    )
    assert "not a URL" in mistake("https://shop.example/", "shop.py")


@pytest.mark.parametrize(
    "url", ["ftp://shop.example/", "http://", "https://[/", "file:///etc/passwd"]
)
def test_a_bad_url(url: str) -> None:
    with pytest.raises(BadUrl):
        load([url])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\nclass Shop(:\n", "bad.py:2: invalid syntax"),
        ("x = 1\n\n1 / 0\n", "bad.py:3: ZeroDivisionError: division by zero"),
        ("def f():\n    raise ValueError\nf()\n", "bad.py:2: ValueError"),
        ("raise ValueError('one\\ntwo')\n", "bad.py:1: ValueError: one"),
        (
            "import no_such_thing\n",
            "bad.py:1: ModuleNotFoundError: No module named 'no_such_thing'",
        ),
        ("raise SystemExit(3)\n", "bad.py:1: SystemExit: 3"),
        ("from shoal import Item\nclass P(Item, key='x'): pass\n", ": P: key= must name fields"),
    ],
)
@pytest.mark.parametrize("target", ["bad.py", "bad:Shop"])
def test_an_exception_at_import_is_one_line_with_its_place(
    write: Write, source: str, expected: str, target: str
) -> None:
    write("bad.py", source)
    before = set(sys.modules)
    assert expected in mistake(target)
    left = set(sys.modules) - before
    assert not [name for name in left if name == "bad" or "shoal_target" in name]


def test_bytes_that_are_no_source(write: Write, tmp_path: Path) -> None:
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff\0'\n")
    assert "bytes.py" in mistake("bytes.py")


# The way back


def test_spec_of_files_modules_and_urls(write: Write, tmp_path: Path) -> None:
    write("shop.py", ONE)
    write("shop_module.py", ONE)
    assert spec_of(load(["shop.py"])) == [f"{tmp_path / 'shop.py'}:Shop"]
    assert spec_of(load(["shop_module:Shop"])) == ["shop_module:Shop"]
    assert spec_of(load(["https://a.example/", "https://b.example/"])) == [
        "https://a.example/",
        "https://b.example/",
    ]
    assert spec_of(LinkSpider) == ["shoal.spider.link_spider:LinkSpider"]


@pytest.mark.parametrize("target", ["shop.py", "shop_module:Shop"])
def test_spec_of_loads_the_same_class(write: Write, target: str) -> None:
    write("shop.py", ONE)
    write("shop_module.py", ONE)
    spider = load([target])
    spec = spec_of(spider)
    assert spec is not None
    assert load(spec) is spider


def test_spec_of_a_class_that_cannot_be_found_again() -> None:
    class Local(Spider):
        pass

    assert spec_of(Local) is None
    assert spec_of(type("Made", (Spider,), {})) is None


MAIN = ONE + "from shoal.fleet.target import spec_of\nprint(spec_of(Shop))\n"


@pytest.mark.parametrize("arguments", [["main.py"], ["-m", "main"], ["-c", MAIN]])
def test_spec_of_a_class_in_the_script(write: Write, tmp_path: Path, arguments: list[str]) -> None:
    write("main.py", MAIN)
    run = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    expected = {
        "main.py": [f"{tmp_path / 'main.py'}:Shop"],
        "-m": ["main:Shop"],
        "-c": None,
    }
    assert run.stdout.strip() == repr(expected[arguments[0]])
