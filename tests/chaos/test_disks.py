"""Disks that are full or read-only: one clear line, exit code 1, and nothing is acknowledged."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.processes import Ended, Folder, limiting_files_to, obeying_permissions
from support.shops import CRAWL, assert_broken_are_dead, assert_found_everything, shop_urls
from support.sites import serving

COMMAND = (*CRAWL, "--workers", "2")


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(Shop(hosts=2, products=100)) as shop:
        yield shop


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting needs rights")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def assert_one_line(ended: Ended, says: str) -> None:
    assert ended.code == 1, ended
    assert re.fullmatch(rf"shoal: .*{says}.*\n", ended.err), ended.err


def test_a_file_that_cannot_grow(tmp_path: Path, shop: Shop) -> None:
    folder = Folder(tmp_path)
    ended = folder.shoal(*COMMAND, env=shop_urls(shop), within=limiting_files_to(200_000))
    assert_one_line(ended, "shoal.db: disk I/O error")
    assert 0 < folder.status("shop")["done"] < len(shop.good())
    assert folder.shoal(*COMMAND, env=shop_urls(shop)).code == 3
    assert_found_everything(folder, shop)
    assert_broken_are_dead(folder, shop)


def test_results_on_a_full_disk(tmp_path: Path, shop: Shop, small_disk: Path) -> None:
    """The frontier could go on. It must not, since items cannot be stored."""
    folder = Folder(tmp_path, {"SHOAL_RESULTS": f"sqlite:///{small_disk}/items.db"})
    ended = folder.shoal(*COMMAND, env=shop_urls(shop))
    assert_one_line(ended, "items.db: database or disk is full")
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    assert folder.status("shop")["items"] <= len(folder.export("shop")) < len(shop.good())
    assert folder.shoal(*COMMAND, env=shop_urls(shop)).code == 3
    assert_found_everything(folder, shop)
    assert_broken_are_dead(folder, shop)


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_read_only_database(tmp_path: Path, shop: Shop, locked: str) -> None:
    address = "sqlite:///data/shop.db"
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": address, "SHOAL_RESULTS": address})
    store = tmp_path / "data"
    store.mkdir()
    database = store / "shop.db"
    assert folder.shoal(*COMMAND, "--max-pages", "20", env=shop_urls(shop)).code in (0, 3)
    before = database.read_bytes(), len(shop.log)
    (database if locked == "file" else store).chmod(0o500)
    ended = folder.shoal(*COMMAND, env=shop_urls(shop), within=obeying_permissions())
    assert_one_line(ended, "shop.db: ")
    assert (database.read_bytes(), len(shop.log)) == before
    (database if locked == "file" else store).chmod(0o700)
    assert folder.shoal(*COMMAND, env=shop_urls(shop)).code == 3
    assert_found_everything(folder, shop)
