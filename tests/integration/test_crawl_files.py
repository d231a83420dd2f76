"""Files of items, as users have them: crawled, exported, asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.picture_shop import (
    FATES,
    picture_shop,
    put_pictures,
)
from support.processes import Ended, Folder
from support.sites import Site, serving


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(picture_shop()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Folder:
    folder = Folder(tmp_path)
    put_pictures(folder, site)
    return folder


def exported(folder: Folder, *options: str) -> dict[str, dict[str, Any]]:
    """The products of a crawl by their skus."""
    ended = folder.shoal("export", "pictures", *options)
    assert ended.code == 0, ended
    return {row["sku"]: row for row in map(json.loads, ended.out.splitlines())}


def the_file(row: dict[str, Any]) -> dict[str, Any]:
    (file,) = row["_files"]
    assert isinstance(file, dict)
    return file


def crawl(folder: Folder, *options: str) -> Ended:
    ended = folder.shoal("crawl", "pictures.py", *options)
    assert ended.code == 3, ended  # Some files are dead.
    return ended


def test_every_fate_is_told_beside_its_item(folder: Folder, site: Site) -> None:
    ended = crawl(folder)
    assert "4 stored" in ended.out + ended.err
    assert site.paths.count("/img/one.png") == 1
    rows = exported(folder, "--files", "out")
    assert set(rows) == set(FATES)
    print(json.dumps(rows, indent=1))
