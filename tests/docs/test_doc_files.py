"""The spider of the guide to files crawls the shop, and its items have their photos."""

from __future__ import annotations

import re
from pathlib import Path

from shoal.core.files import FileStatus
from shoal.export.item_files import ExportedFile
from support.docs import Reader
from support.markdown import ROOT, blocks, table_after

GUIDE = ROOT / "docs/guides/files.md"


def test_its_spider_crawls_the_shop(tmp_path: Path, shop: str) -> None:
    spider, *_ = (block.text for block in blocks(GUIDE) if block.language == "python")
    reader = Reader(tmp_path, shop)
    reader.write("photos.py", spider)
    assert reader.run("shoal", "crawl", "photos.py").code in (0, 3)
    ended = reader.run("shoal", "export", "photos", "-o", "photos.jsonl", "--files", "pictures")

    assert ended.code == 0, ended
    written = [path for path in (tmp_path / "pictures").rglob("*") if path.is_file()]
    assert written
    assert {path.suffix for path in written} == {".svg"}
    text = (tmp_path / "photos.jsonl").read_text()
    assert text.count('"_complete":true') == len(text.splitlines()) > 0


def test_the_guide_has_every_status_and_every_field() -> None:
    text = GUIDE.read_text()

    statuses = {span.strip("`") for span, *_ in table_after(GUIDE, "`_complete` is true")} | set(
        re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    )
    assert set(FileStatus) <= statuses
    assert all(f'"{name}":' in text for name in ExportedFile.__struct_fields__)
