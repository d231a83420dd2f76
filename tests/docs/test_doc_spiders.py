"""Every Python block of the guide to spiders runs.

A block whose first line is a file's name is a whole spider, or a script: it crawls the shop. One
that starts with a method is put into a spider and given a page. All others are simply executed.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import msgspec
import pytest

from shoal import Page, Spider, Task
from shoal.demo import Pages, make_ware
from shoal.spider.harvest import Harvest, harvest
from support.docs import Reader
from support.markdown import ROOT, Block, blocks, table_after

GUIDE = ROOT / "docs/guides/spiders.md"
ORIGIN = "https://shop.example"

_FILE_NAME = re.compile(r"# (\w+\.py)\n")
_WARES = [make_ware(0, number, 1) for number in range(1, 41)]
_SHOP = Pages(0, [_WARES], [ORIGIN], messy=False)
_BODIES = {
    "parse": _SHOP.listing(None, 1) or "",
    "api": '{"items": [{"id": 1}, {"id": 2}]}',
}

PYTHON = [block for block in blocks(GUIDE) if block.language == "python"]
WHOLE = [block for block in PYTHON if _FILE_NAME.match(block.text)]
METHODS = [block for block in PYTHON if re.match(r"(async )?def ", block.text)]
OTHERS = [block for block in PYTHON if block not in WHOLE and block not in METHODS]


def line_of(block: Block) -> str:
    return f"line {block.line}"


@pytest.mark.rare
@pytest.mark.parametrize("block", WHOLE, ids=line_of)
def test_whole_spiders_crawl_the_shop(block: Block, tmp_path: Path, shop: str) -> None:
    name = re.findall(_FILE_NAME, block.text)[0]
    reader = Reader(tmp_path, shop)
    reader.write(name, block.text)
    if "__main__" in block.text:
        ended = reader.run(sys.executable, "-W", "error", name)
        assert (ended.code, ended.err) == (0, "")
        assert re.fullmatch(r"\d+ pages \{'item': [1-9]\d*\} 0\n", ended.out)
    else:
        ended = reader.run("shoal", "crawl", name, "--json")
        assert ended.code in (0, 3), ended.err
        assert ended.json()["items"] > 0
        assert ended.json()["rejected"] == 0


def page_for(handler: str) -> Page:
    """What the demo shop would answer, without asking it."""
    body = _BODIES.get(handler) or _SHOP.product(_WARES[0])
    url = f"{ORIGIN}/product/1"
    return Page(
        url=url,
        status=200,
        headers={"Content-Type": "text/html; charset=utf-8"},
        body=body.encode(),
        task=Task(url=url, job_type=handler),
        fingerprint=b"8 bytes.",
    )


def spider_with(methods: str) -> type[Spider]:
    scope: dict[str, Any] = {"Spider": Spider}
    exec(f"class Example(Spider):\n{indent(methods, '    ')}", scope)
    found: type[Spider] = scope["Example"]
    return found


@pytest.mark.parametrize("block", METHODS, ids=line_of)
async def test_handlers_read_a_page(block: Block) -> None:
    spider = spider_with(block.text)
    handlers = [name for name, thing in vars(spider).items() if inspect.isfunction(thing)]

    assert handlers
    for handler in handlers:
        found = await harvest(spider(), page_for(handler))
        assert found.items or found.tasks, handler


async def test_the_ways_to_write_a_handler_do_the_same() -> None:
    block = next(block for block in METHODS if "def one_by_one" in block.text)
    names = ("one_by_one", "all_at_once", "returned", "with_await")
    spider = spider_with(block.text)()
    found: list[Harvest] = [await harvest(spider, page_for(name)) for name in names]

    urls = [[task.url for task in each.tasks] for each in found]
    assert urls == [urls[0]] * len(names)
    assert urls[0]


@pytest.mark.parametrize("block", OTHERS, ids=line_of)
def test_other_blocks_run(block: Block) -> None:
    exec(compile(block.text, f"{GUIDE.name}:{block.line}", "exec"), {"__name__": __name__})


def test_there_are_blocks_of_every_sort() -> None:
    assert len(WHOLE) >= 4
    assert len(METHODS) >= 4
    assert OTHERS


def test_the_options_of_follow_are_those_of_the_table() -> None:
    named = [row[0] for row in table_after(GUIDE, "Both take the same options")]
    filters = [row[0] for row in table_after(GUIDE, "which of the links it finds are followed")]
    only_of_all = [name for name in filters if name not in named]

    assert options_of(Page.follow) == named
    assert options_of(Page.follow_all) == [*named, *only_of_all]


def options_of(method: Callable[..., Any]) -> list[str]:
    """Without what stands for all words that it does not know."""
    return [name for name in inspect.signature(method).parameters if name != "unknown"][2:]


def test_what_the_guide_says_of_a_page_exists() -> None:
    for span, _ in table_after(GUIDE, "def product(self, page):"):
        assert hasattr(Page, re.sub(r"page\.|\(.*", "", span)), span
    assert {"depth", "priority", "parent", "redirects"} <= {
        field.name for field in msgspec.structs.fields(Task)
    }
