"""Disks that are full or read-only: one clear line, exit code 1, and nothing is acknowledged."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.links import numbered_pages, paths_of, put_spider
from support.processes import Ended, Folder, limiting_files_to, obeying_permissions
from support.rarely import first_then_rare
from support.server_process import lacking
from support.sites import Site, serving

PAGES, PAGE_SIZE = 300, 3_000
COMMAND = ("crawl", "links.py", "--workers", "2")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(PAGES, PAGE_SIZE))) as site:
        yield site


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        lacking("the right to mount: run as root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def assert_one_line(ended: Ended, says: str) -> None:
    assert ended.code == 1, ended
    assert re.fullmatch(rf"shoal: .*{says}.*\n", ended.err), ended.err


def assert_room_is_all_it_takes(folder: Folder, site: Site) -> None:
    """Check that nothing was acknowledged before it was stored, so that the same command finishes
    the crawl."""
    stats = folder.stats("links")
    assert stats.done == stats.items <= len(folder.export("links")) < PAGES
    assert folder.shoal(*COMMAND).code == 0
    assert set(site.paths) == set(paths_of(PAGES))
    assert len(folder.export("links")) == PAGES + 1


def test_a_file_that_cannot_grow(tmp_path: Path, site: Site) -> None:
    folder = Folder(tmp_path)
    put_spider(folder, [site], rate="none")
    ended = folder.shoal(*COMMAND, within=limiting_files_to(700_000))
    assert_one_line(ended, "shoal.db: disk I/O error")
    assert_room_is_all_it_takes(folder, site)


def test_results_on_a_full_disk(tmp_path: Path, site: Site, small_disk: Path) -> None:
    """The frontier has room. The crawl must stop all the same, as items cannot be stored."""
    folder = Folder(tmp_path, {"SHOAL_RESULTS": f"sqlite:///{small_disk}/items.db"})
    put_spider(folder, [site], rate="none")
    assert_one_line(folder.shoal(*COMMAND), "items.db: database or disk is full")
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    assert_room_is_all_it_takes(folder, site)


@pytest.mark.rare
@pytest.mark.parametrize("locked", first_then_rare("folder", "file"))
def test_a_read_only_database(tmp_path: Path, site: Site, locked: str) -> None:
    address = "sqlite:///data/links.db"
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": address, "SHOAL_RESULTS": address})
    put_spider(folder, [site], rate="none")
    database = tmp_path / "data" / "links.db"
    database.parent.mkdir()
    assert folder.shoal(*COMMAND, "--max-pages", "20").code == 0
    before = database.read_bytes(), len(site.hits)
    (database if locked == "file" else database.parent).chmod(0o500)
    ended = folder.shoal(*COMMAND, within=obeying_permissions())
    assert_one_line(ended, "links.db: ")
    assert (database.read_bytes(), len(site.hits)) == before
    (database if locked == "file" else database.parent).chmod(0o700)
    assert_room_is_all_it_takes(folder, site)
