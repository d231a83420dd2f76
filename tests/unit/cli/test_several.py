"""Several spiders for `shoal crawl`: what is said before any of them runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.several import are_several, crawl_several
from shoal.config import Settings, of_spider
from shoal.errors import ConfigError
from shoal.fleet import several
from shoal.fleet.several import PlannedCrawl, worst_of
from shoal.spider.own_settings import settings_of
from shoal.spider.spider import Spider
from support.until import in_time

SPIDER = """
from shoal import Spider
from support.until import in_time

class {name}(Spider):
    category: str = "all"
"""


@pytest.fixture
def shops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in the working folder, with two spiders. Imports leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    folder = tmp_path / "shops"
    folder.mkdir()
    for name in ("Books", "Toys"):
        (folder / f"{name.lower()}.py").write_text(SPIDER.format(name=name))
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


def mistake(*targets: str, args: list[str] | None = None, **more: Any) -> str:
    said: dict[str, Any] = {
        **{"options": {}, "is_all": False, "at_once": 1},
        **{"fresh": False, "json": False, "output": None},
    }
    with pytest.raises(ConfigError) as raised:
        crawl_several(targets, args, **(said | more))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_urls_and_arguments_of_scrapy_are_no_spiders() -> None:
    assert are_several(["a.py", "b.py"])
    assert not are_several(["a.py"])
    assert not are_several(["http://a.example/", "http://b.example/"])
    assert not are_several(["scrapy:shop", "category=books"])


def test_mistakes_are_one_line(shops: Path) -> None:
    assert "is a folder, not a spider (crawl --all runs" in mistake("shops", "shops/toys.py")
    unknown = mistake("shops", is_all=True, args=["categry=x"])
    assert unknown == "these spiders have no argument 'categry'; did you mean category?"
    assert "are for one spider" in mistake("shops", is_all=True, output=Path("x.csv"))
    assert "are for one spider" in mistake("shops", is_all=True, options={"name": "x"})
    assert "are both crawl 'books'" in mistake("shops/books.py", "shops/books.py")
    for file in shops.iterdir():
        if file.suffix == ".py":
            file.unlink()
    (shops / "odd.py").write_text("class Odd(Nothing): pass")
    assert mistake("shops", is_all=True).startswith("no spiders in shops: shops/odd.py:1: ")


def test_a_spider_has_its_own_table(shops: Path) -> None:
    class Toys(Spider):
        name = "toys-{category}"
        rate = "3/s"
        max_pages = 5
        category: str = "all"

    Path("shoal.toml").write_text('[spider.toys]\nmax_pages = 2\n[spider.other]\nrate = "9/s"\n')

    assert settings_of(Toys) == {"rate": "3/s", "max_pages": 2}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[spider.toys]\nmax_page = 2", "[spider.toys] has no setting 'max_page'; did you mean"),
        ("[spider.toys]\nmax_pages = 0", "[spider.toys]: max_pages"),
        ("[[spider.toys]]", "[spider.toys] must be a table"),
        ("spider = 3", "[spider.toys] must be a table"),
    ],
)
def test_a_mistake_in_it_names_it(shops: Path, table: str, message: str) -> None:
    Path("shoal.toml").write_text(table)

    with pytest.raises(ConfigError) as raised:
        of_spider("toys")
    assert message in str(raised.value)


async def test_one_that_breaks_keeps_no_other_from_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_failed = asyncio.Event()

    async def run_crawl(spider: type[Spider], settings: Settings, **options: Any) -> Any:
        if settings.name == "bad":
            has_failed.set()
            raise OSError("disk full")
        await in_time("the other to fail", has_failed.wait())
        await asyncio.sleep(0)
        raise ConfigError("it has run")

    monkeypatch.setattr(several, "run_crawl", run_crawl)
    planned = [PlannedCrawl("x.py", Spider, Settings(name=name)) for name in ("bad", "good")]
    ended = await several.run_several(planned, at_once=2, fresh=False, watch=lambda seen: None)
    assert [str(each.error) for each in ended] == ["OSError: disk full", "it has run"]
    assert [each.exit_code for each in ended] == [1, 2]


@pytest.mark.parametrize(("codes", "worst"), [([], 0), ([0, 3], 3), ([3, 1, 0], 1), ([1, 2], 2)])
def test_the_worst_exit_code_counts(codes: list[int], worst: int) -> None:
    assert worst_of(codes) == worst
