"""Workers die in the middle of a crawl whose items have files: each file is stored once, and each
item is complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.crashes import has_crashed
from support.kills import kill_workers
from support.links import GatedSite
from support.picture_shop import picture, sha256
from support.processes import Folder, seeded_random
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import html, serving

ITEMS, FILES, KILLS, WORKERS = 30, 4, 3, 2
REQUESTS = 1 + ITEMS + ITEMS * (FILES - 1) + 1
SPIDER = """
from shoal import Spider

class Pots(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    lease_s = 3600

    def parse(self, page):
        yield page.follow_all("a", handler=self.pot)

    def pot(self, page):
        item = {{"sku": page.url.rpartition("/")[2]}}
        yield page.files("img", item=item)
"""


class GatedShop(GatedSite):
    """Each item has its own files, some with the same content as another item's, and one file that
    all items have. Answers only as many requests as are allowed."""

    def __init__(self) -> None:
        super().__init__(0)
        self._page = self._shop_page

    async def _shop_page(self, path: str) -> web.Response:
        name = path.rpartition("/")[2]
        if path == "/":
            return html("".join(f'<a href="/p/{n}">x</a>' for n in range(ITEMS)))
        if path.startswith("/p/"):
            return html("".join(f'<img src="{file}">' for file in files_of(name)))
        return web.Response(body=content(name), content_type="image/png")


def files_of(sku: str) -> list[str]:
    """The paths of an item's files."""
    return [*(f"/img/{sku}-{n}" for n in range(FILES - 1)), "/img/all"]


def content(name: str) -> bytes:
    """The content of a file. Two neighbouring items have the same content in every other file."""
    number, _, file = name.partition("-")
    if file and int(file) % 2:
        return picture(f"{int(number) // 2} {file}")
    return picture(name)


@pytest.fixture
def site() -> Iterator[GatedShop]:
    with serving(GatedShop()) as site:
        yield site
        site.allowed = 10**9


def assert_all_is_kept(folder: Folder, *stores: str) -> None:
    """Check that every item has all its files, and that equal contents are stored once."""
    skus = [str(number) for number in range(ITEMS)]
    ended = folder.shoal("export", "pots", *stores, "-o", "pots.jsonl", "--files", "out")
    assert ended.code == 0, ended
    rows = {row["sku"]: row for row in jsonl(folder.path / "pots.jsonl")}
    assert sorted(rows) == sorted(skus)
    for sku, row in rows.items():
        assert row["_complete"], row
        names = [path.rpartition("/")[2] for path in files_of(sku)]
        assert [file["sha256"] for file in row["_files"]] == [sha256(content(n)) for n in names]
        for file in row["_files"]:
            assert sha256((folder.path / "out" / file["path"]).read_bytes()) == file["sha256"]
    contents = {content(path.rpartition("/")[2]) for sku in skus for path in files_of(sku)}
    stored = [p for p in (folder.path / "store").rglob("*") if p.is_file()]
    whole = [path for path in stored if not path.name.startswith(".")]
    assert len(whole) == len(contents)


def jsonl(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.rare
@pytest.mark.parametrize("on_redis", first_then_rare(False, True))
def test_killed_workers_leave_no_file_behind(
    tmp_path: Path, site: GatedShop, redis_server: RedisServer, on_redis: bool
) -> None:
    stores = ("--frontier", redis_server.url) if on_redis else ()
    redis_server.client().flushall()
    folder = Folder(tmp_path)
    folder.write("pots.py", SPIDER.format(url=site.url))
    random = seeded_random("kills of workers that fetch files")
    options = ("--workers", str(WORKERS), "--file-store", "file:store")
    with folder.running("crawl", "pots.py", *options, *stores) as crawl:
        moments = random.sample(range(ITEMS, REQUESTS), KILLS)
        kill_workers(crawl, site, WORKERS, moments, random)
        ended = crawl.wait()
    assert ended.code == 0, ended
    assert not has_crashed(ended.err), ended.err
    assert_all_is_kept(folder, *stores)
