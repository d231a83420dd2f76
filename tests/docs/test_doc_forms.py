"""The spiders of the guide to forms crawl a site that has these forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.docs import Reader
from support.form_site import FormSite
from support.markdown import ROOT, Block, blocks
from support.sites import serving

GUIDE = ROOT / "docs/guides/forms.md"
SPIDERS = [block for block in blocks(GUIDE) if block.language == "python"]
ITEMS = {"forms.py": 3, "api.py": 3}


@pytest.fixture(scope="module")
def site() -> Iterator[FormSite]:
    with serving(FormSite()) as site:
        yield site


@pytest.mark.parametrize("block", SPIDERS, ids=lambda block: f"line {block.line}")
def test_its_spiders_fill_in_forms(block: Block, tmp_path: Path, site: FormSite) -> None:
    (name,) = re.findall(r"\A# (\w+\.py)\n", block.text)
    reader = Reader(tmp_path, site.url.removesuffix("/"))
    reader.write(name, block.text)
    ended = reader.run("shoal", "crawl", name, "--json")
    assert ended.code == 0, (ended.err, ended.out)
    assert (ended.json()["items"], ended.json()["rejected"]) == (ITEMS[name], 0)
