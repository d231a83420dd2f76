"""Files of items, as users have them: crawled, exported, asked for, crawled again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.config import Settings
from shoal.core.files import file_task, with_room
from shoal.errors import Refused
from shoal.fetch.port import Request
from shoal.worker.visits.spider_visits import fetchers_for
from support.hostile import HostileServer
from support.picture_shop import (
    FATES,
    LIMITS,
    STORED,
    PictureShop,
    picture,
    put_pictures,
    sha256,
)
from support.postgres_servers import PostgresServer
from support.processes import Ended, Folder, peak_memory_kb
from support.redis_servers import RedisServer
from support.s3_servers import BUCKET, Rclone
from support.sites import Site, html, serving
from support.streams import stream_url
from support.until import until_now


@pytest.fixture
def site() -> Iterator[PictureShop]:
    with serving(PictureShop()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: PictureShop) -> Folder:
    folder = Folder(tmp_path)
    put_pictures(folder, site)
    return folder


def exported(folder: Folder, crawl: str = "pictures", *options: str) -> dict[str, dict[str, Any]]:
    """The products of a crawl by their skus."""
    ended = folder.shoal("export", crawl, *options)
    assert ended.code == 0, ended
    return {row["sku"]: row for row in map(json.loads, ended.out.splitlines())}


def the_file(row: dict[str, Any]) -> dict[str, Any]:
    (file,) = row["_files"]
    assert isinstance(file, dict)
    return file


def crawl(folder: Folder, *options: str, code: int = 3) -> Ended:
    """Some files are dead."""
    ended = folder.shoal("crawl", "pictures.py", *options)
    assert ended.code == code, ended
    return ended


def complete(rows: dict[str, dict[str, Any]]) -> set[str]:
    return {sku for sku, row in rows.items() if row.get("_complete")}


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_fate_is_told_beside_its_item(folder: Folder, site: PictureShop) -> None:
    ended = crawl(folder)
    assert "4 stored" in ended.out
    assert site.paths.count("/img/one.png") == 1, "it is one file, though two products have it"
    assert len(files_below(folder.path / "shoal-files")) == 3, "stored once by content"

    rows = exported(folder, "pictures", "--files", "out")
    assert set(rows) == set(FATES)
    assert complete(rows) == set(STORED)
    errors = {sku: the_file(row).get("error") for sku, row in rows.items() if "_files" in row}
    assert errors == dict.fromkeys(STORED) | {
        "too-large": "larger than 50000 bytes (max_file_bytes)",
        "gone": "HTTP 404",
        "sorry": "it is text/html, and wanted are image/* (file_types)",
        "empty": "the file is empty",
        "broken": "HTTP 418",
        "forbidden": "robots.txt forbids it",
        "elsewhere": "host not allowed: http://no.example/x.png",
        "data": "no web address",
    }
    assert "_files" not in rows["none"]

    one, moved = the_file(rows["plain"]), the_file(rows["moved"])
    assert one["sha256"] == the_file(rows["same-content"])["sha256"] == sha256(picture("one"))
    assert one == the_file(rows["same-file"])
    assert moved["url"] == f"{site.url}img/moved.png"
    assert (folder.path / "out" / moved["path"]).read_bytes() == picture("target")
    assert len(files_below(folder.path / "out")) == 3


def test_one_can_ask_what_became_of_a_file(folder: Folder, site: PictureShop) -> None:
    crawl(folder)
    said = folder.shoal("explain", "pictures", f"{site.url}img/one.png").out
    assert f"files/{sha256(picture('one'))[:2]}/" in said
    assert f"{site.url}p/plain" in said
    said = folder.shoal("explain", "pictures", f"{site.url}img/gone.png").out
    assert "dropped: HTTP 404" in said
    told = folder.shoal("explain", "pictures", f"{site.url}img/one.png", "--json").json()
    assert told["file"]["sha256"] == sha256(picture("one"))
    assert folder.shoal("status", "pictures", "--json").json()["files"] == 4
    dead = folder.shoal("dead", "list", "pictures").out
    assert "broken.png" in dead
    assert "too-large.png" in dead


@pytest.mark.rare
def test_a_dead_file_that_is_tried_again_completes_its_item(
    folder: Folder, site: PictureShop
) -> None:
    crawl(folder)
    site.is_mended = True
    assert folder.shoal("dead", "retry", "pictures").code == 0
    assert "file_types" in LIMITS
    put_pictures(folder, site, LIMITS.replace("50_000", "70_000"))
    crawl(folder, code=0)
    assert complete(exported(folder)) == {*STORED, "broken", "too-large"}


@pytest.mark.rare
def test_a_file_that_has_not_changed_is_not_sent_again(folder: Folder, site: PictureShop) -> None:
    crawl(folder, "--name", "mon")
    site.hits.clear()
    crawl(folder, "--name", "tue", "--previous", "mon")
    assert site.unchanged == ["/img/one.png"]
    rows = exported(folder, "tue", "--files", "out")
    assert complete(rows) == set(STORED)
    assert the_file(rows["plain"])["sha256"] == sha256(picture("one"))
    # In another store there is none of them yet.
    crawl(folder, "--name", "wed", "--previous", "tue", "--file-store", "file:other")
    assert site.unchanged == ["/img/one.png"]
    assert complete(exported(folder, "wed", "--files", "out2")) == set(STORED)


def test_items_that_are_gone_keep_their_files(folder: Folder, site: PictureShop) -> None:
    whole = {sku: path for sku, path in FATES.items() if sku in STORED}
    site.products = whole
    crawl(folder, "--name", "mon", code=0)
    site.products = {"moved": FATES["moved"]}
    crawl(folder, "--name", "tue", "--previous", "mon", code=0)
    rows = exported(folder, "tue", "--gone", "--files", "out")
    assert complete(rows) == set(STORED)


def test_what_is_read_again_or_merged_has_its_files(folder: Folder) -> None:
    crawl(folder, "--archive", "file:raw", "--archive-format", "warc")
    before = exported(folder)
    assert not (folder.path / "shoal-files").exists(), "they go where the pages go"
    assert folder.shoal("reparse", "pictures").code == 0
    assert exported(folder) == before
    assert folder.shoal("merge", "pictures", "--into", "all", "--by", "sku").code == 0
    assert complete(exported(folder, "all", "--files", "out", "--file-store", "file:raw")) == set(
        STORED
    )


@pytest.mark.rare
def test_starting_over_forgets_what_is_known_of_files(folder: Folder, site: PictureShop) -> None:
    crawl(folder)
    site.products = {"plain": "/img/gone.png"}
    crawl(folder, "--fresh", code=0)
    (row,) = exported(folder).values()
    assert the_file(row)["status"] == "dropped"


@pytest.mark.rare
def test_files_in_a_bucket(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Rclone(tmp_path / "rclone") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        crawl(folder, "--file-store", f"s3://{BUCKET}/files")
        rows = exported(folder, "pictures", "--files", "out")
        assert complete(rows) == set(STORED)
        for sku in STORED:
            file = the_file(rows[sku])
            assert sha256((folder.path / "out" / file["path"]).read_bytes()) == file["sha256"]


@pytest.mark.rare
def test_a_fleet_needs_a_place_that_all_its_machines_reach(
    folder: Folder, postgres_server: PostgresServer, redis_server: RedisServer
) -> None:
    stores = (
        *("--results", postgres_server.new_database("files")),
        *("--frontier", redis_server.url),
    )
    ended = crawl(folder, *stores, code=2)
    *_, said = ended.err.splitlines()
    assert said.startswith("shoal: files of items have no place to go: name one")
    crawl(folder, *stores, "--file-store", "file:shared", "--workers", "2")
    rows = exported(folder, "pictures", *stores, "--files", "out")
    assert complete(rows) == set(STORED)


@pytest.mark.rare
def test_files_are_known_behind_a_stream(folder: Folder, redis_server: RedisServer) -> None:
    results = ("--results", stream_url(redis_server))
    crawl(folder, *results, "--file-store", "file:shared")
    drained = folder.shoal("drain", *results, "--to", "sqlite:///drained.db", "--until-empty")
    assert drained.code == 0, drained
    rows = exported(folder, "pictures", "--results", "sqlite:///drained.db", "--files", "out")
    assert complete(rows) == set(STORED)


MANY = 10_000
MANY_SPIDER = """
from shoal import Spider

class Many(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    robots = False
    max_pages = 20

    def parse(self, page):
        yield page.files([f"/img/{{n}}.png" for n in range({many})], item={{"n": "all"}})
"""


def test_ten_thousand_files_of_one_item(tmp_path: Path) -> None:
    async def answer(path: str) -> Any:
        return html("the page")

    folder = Folder(tmp_path)
    with serving(Site(answer)) as site:
        folder.write("many.py", MANY_SPIDER.format(url=site.url, many=MANY))
        assert folder.shoal("crawl", "many.py").code == 0
    (row,) = folder.export("many")
    statuses = [file["status"] for file in row["_files"]]
    assert len(statuses) == MANY
    assert 0 < statuses.count("done") < MANY
    assert set(statuses) == {"done", "missing"}
    assert not row["_complete"]


HOSTILE_SPIDER = """
from shoal import Spider

class Hostile(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    max_retries = 0

    def parse(self, page):
        paths = {paths}
        yield page.files(paths, item={{"n": "all"}})
"""
MAX_MEMORY_KB = 500_000
"""Four files of 64 MiB at once, as they come and once more as bytes."""
HOSTILE = {
    "/endless": "larger than 67108864 bytes (max_file_bytes)",
    "/endless-no-length": "larger than 67108864 bytes (max_file_bytes)",
    "/huge": "larger than 67108864 bytes (max_file_bytes)",
    "/gzip-bomb": "larger than 67108864 bytes (max_file_bytes)",
    "/redirect-self": "redirects in a loop",
    "/closes-mid-body": "server closed the connection",
}


def test_no_file_makes_a_worker_grow(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with serving(HostileServer()) as server:
        paths = list(HOSTILE)
        text = HOSTILE_SPIDER.format(url=server.url("/ok"), paths=paths)
        folder.write("hostile.py", text)
        peaks = [0]
        with folder.running("crawl", "hostile.py") as running:

            def ended() -> bool:
                peaks.extend(map(peak_memory_kb, running.workers()))
                return running.has_ended()

            until_now("the end of the crawl", ended)
            assert running.wait().code == 3
    (row,) = folder.export("hostile")
    assert [file["url"].rpartition("/")[2] for file in row["_files"]] == [p[1:] for p in paths]
    for file, error in zip(row["_files"], HOSTILE.values(), strict=True):
        assert error in file["error"]
    assert max(peaks) < MAX_MEMORY_KB


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_page_cannot_send_a_worker_to_private_addresses_for_a_file(is_large: bool) -> None:
    task = file_task("http://127.0.0.1:1/x.png", None)
    if is_large:
        task = with_room(task, b"f" * 8)
    fetcher = fetchers_for(Settings())
    try:
        with pytest.raises(Refused):
            await asyncio.wait_for(fetcher.fetch(Request(task)), 30)
    finally:
        await fetcher.close()
