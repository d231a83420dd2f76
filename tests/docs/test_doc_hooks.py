"""The spiders of the guide to hooks crawl the shop, with what it says of shoal.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.core.task import Task
from shoal.spider.failure import Failure
from shoal.spider.hooks import TAKES
from shoal.spider.outgoing import Outgoing
from support.docs import Reader
from support.markdown import ROOT, Block, blocks, table_after

GUIDE = ROOT / "docs/guides/hooks.md"
SPIDERS = [block for block in blocks(GUIDE) if block.language == "python"]
(TOML,) = (block.text for block in blocks(GUIDE) if block.language == "toml")


@pytest.mark.rare
@pytest.mark.parametrize("block", SPIDERS, ids=lambda block: f"line {block.line}")
def test_its_spiders_crawl_the_shop(block: Block, tmp_path: Path, shop: str) -> None:
    (name,) = re.findall(r"\A# (\w+\.py)\n", block.text)
    reader = Reader(tmp_path, shop)
    reader.write(name, block.text)
    if "plugins" in block.text:
        reader.write("shoal.toml", TOML)
    ended = reader.run("shoal", "crawl", name, "--json")

    assert ended.code == 0, (ended.err, ended.out)
    assert ended.json()["rejected"] == 0
    assert ended.json()["items"] > 0


def test_all_hooks_are_in_the_guide() -> None:
    text = GUIDE.read_text()

    assert all(f"def {hook}(self" in text for hook in TAKES)


def test_the_guide_names_what_a_failure_has() -> None:
    named = {re.sub(r"failure\.|\(.*", "", span) for span, _ in table_after(GUIDE, "# missing.py")}

    assert named == {name for name in dir(Failure) if not name.startswith("_")}


def test_the_guide_names_what_a_request_has() -> None:
    request = Outgoing(Task(url="https://shop.example/"))

    for span, _ in table_after(GUIDE, "# signed.py"):
        assert hasattr(request, span.removeprefix("request.")), span
