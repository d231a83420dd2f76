"""The tests that the guide to working on a spider shows pass; what it says of messages is so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from support.docs import Reader
from support.markdown import ROOT, blocks

GUIDE = ROOT / "docs/guides/working-on-a-spider.md"


def test_its_tests_pass(tmp_path: Path) -> None:
    for block in blocks(GUIDE):
        if name := re.match(r"# (\w*shop\.py)\n", block.text):
            (tmp_path / name[1]).write_text(block.text, "utf-8")
    reader = Reader(tmp_path, "http://127.0.0.1:9")
    ended = reader.run(sys.executable, "-m", "pytest", "-q", "test_shop.py")
    assert ended.code == 0, ended.out
    assert "2 passed" in ended.out


def test_the_names_at_the_prompt_are_in_the_guide(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "http://127.0.0.1:9")
    ended = reader.run("shoal", "shell", "-c", "print(*dir())")
    at_hand = {name for name in ended.out.split() if not name.startswith("__")}
    named = set(re.findall(r"^\| `(\w+)", GUIDE.read_text("utf-8"), re.MULTILINE))
    assert at_hand <= named, at_hand - named
