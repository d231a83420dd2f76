"""`shoal crawl -o`: the items as a file, when the crawl is over."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from support.processes import Folder
from support.sites import serving
from support.small_site import THINGS, put_spider, small_site


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_items_are_in_the_file_when_the_crawl_is_over(folder: Folder) -> None:
    with serving(small_site()) as site:
        put_spider(folder, site)
        ended = folder.shoal("crawl", "small.py", "-o", "items.csv")

    assert ended.code == 3
    assert ended.err.endswith("6 items in items.csv\n")
    assert "shoal export" not in ended.out
    with (folder.path / "items.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["path"] for row in rows if row["_kind"] == "Thing") == THINGS


@pytest.mark.parametrize(
    ("output", "options", "said"),
    [
        ("items.xls", (), "items.xls: no format has this suffix (formats: jsonl, csv, parquet)"),
        ("no/items.csv", (), "no/items.csv: there is no folder {here}/no"),
        ("d.csv", (), "d.csv: not a regular file"),
        (
            "items.csv",
            ("--results", "redis-stream://127.0.0.1:1"),
            "-o cannot read items from a stream: it leads to another store",
        ),
    ],
)
def test_a_file_that_cannot_be_is_refused_before_the_crawl(
    folder: Folder, output: str, options: tuple[str, ...], said: str
) -> None:
    (folder.path / "d.csv").mkdir()
    ended = folder.shoal("crawl", "http://127.0.0.1:1/", "-o", output, *options)

    here = folder.path.resolve()
    assert ended == (2, "", f"shoal: {said.format(here=here)}\n")
    assert not (folder.path / "shoal.db").exists()
