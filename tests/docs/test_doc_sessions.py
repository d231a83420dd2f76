"""The spiders of the guide to sessions log in at a shop that watches them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.docs import Reader
from support.markdown import ROOT, Block, blocks
from support.session_site import SessionSite
from support.sites import serving

GUIDE = ROOT / "docs/guides/sessions.md"
ACCOUNTS = {"alice": "wonderland", "bob": "builder"}
SPIDERS = [block for block in blocks(GUIDE) if re.match(r"# \w+\.py\n", block.text)]
(TABLE,) = (block.text for block in blocks(GUIDE) if block.language == "toml")


@pytest.fixture
def site() -> Iterator[SessionSite]:
    with serving(SessionSite(ACCOUNTS)) as site:
        yield site


@pytest.mark.rare
@pytest.mark.parametrize("block", SPIDERS, ids=lambda block: f"line {block.line}")
def test_its_spiders_log_in(block: Block, tmp_path: Path, site: SessionSite) -> None:
    (name,) = re.findall(r"\A# (\w+\.py)\n", block.text)
    reader = Reader(tmp_path, site.url.removesuffix("/"))
    lines = [f"{user},{password}\n" for user, password in ACCOUNTS.items()]
    reader.write("accounts.csv", "user,password\n" + "".join(lines))
    reader.write(name, block.text)
    own = "def login(" in block.text
    if not own:
        reader.write("shoal.toml", TABLE)
    by_file = ("--accounts", "accounts.csv") if own else ()
    ended = reader.run("shoal", "crawl", name, *by_file, "--json")
    assert ended.code == 0, (ended.err, ended.out)
    assert ended.json()["items"] == len(site.numbers)
    door = site.door
    assert (door.overlaps, door.violations, door.needless, door.faults) == ([], [], [], [])
    assert set(door.logins) <= set(ACCOUNTS)
    assert len(door.logins) == len(set(door.logins))
    assert bool(door.seen("/api/login")) == ("api/login" in block.text)


def test_the_accounts_are_those_of_the_guide() -> None:
    text = GUIDE.read_text("utf-8")
    assert "\\n".join(f"{user},{password}" for user, password in ACCOUNTS.items()) in text
