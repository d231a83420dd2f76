"""`shoal crawl --archive`, as users run it: what is kept, and what is said if it cannot be."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.archive import open_archive
from shoal.archive.port import RawPage
from shoal.core.content import PAGE_DIGEST_BYTES
from shoal.errors import StorageFailed
from shoal.results.port import PageLog
from shoal.results.sqlite.store import SqliteResults
from support.processes import Ended, Folder, obeying_permissions
from support.s3_servers import BUCKET, Rclone
from support.sites import Site, serving
from support.small_site import THINGS, put_spider, small_site

ARCHIVED = sorted([*THINGS, "/broken"])
NO_LIBRARY = "raise ModuleNotFoundError('not here', name='{name}')"


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(small_site()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Folder:
    folder = Folder(tmp_path)
    put_spider(folder, site)
    return folder


def archived(address: str, crawl: str = "small") -> list[RawPage]:
    """All pages that an archive has of a crawl."""

    async def read() -> list[RawPage]:
        trouble: list[StorageFailed] = []
        archive = open_archive(address, "blobs")
        try:
            pages = [page async for page in archive.pages(crawl, trouble.append)]
        finally:
            await archive.close()
        assert not trouble
        return pages

    return asyncio.run(read())


def path_of(page: RawPage) -> str:
    return "/" + page.task.url.split("/", 3)[3].partition("?")[0]


def assert_refused(folder: Folder, ended: Ended, says: str) -> None:
    assert ended.code == 2, ended
    assert re.fullmatch(r"shoal: .+\n", ended.err), ended.err
    assert says in ended.err
    assert not (folder.path / "shoal.db").exists(), "it has begun"


@pytest.mark.parametrize("fmt", ["blobs", "warc"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_page_that_was_parsed_is_kept(folder: Folder, fmt: str, workers: str) -> None:
    options = ("--archive", "file:raw", "--archive-format", fmt, "--workers", workers)
    assert folder.shoal("crawl", "small.py", *options).code == 3
    pages = archived(f"file:{folder.path}/raw")
    assert sorted(map(path_of, pages)) == ARCHIVED
    (front,) = (page for page in pages if path_of(page) == "/")
    assert b"/moved" in front.body
    assert dict(front.headers)["Content-Type"].startswith("text/html")


def test_the_page_log_says_where_a_page_is(folder: Folder) -> None:
    assert folder.shoal("crawl", "small.py", "--archive", "file:raw").code == 3
    address = f"file:{folder.path}/raw"

    async def check() -> None:
        results = SqliteResults(folder.path / "shoal.db")
        archive = open_archive(address, "blobs")
        for page in archived_pages:
            (entry,) = await results.pages_of("small", page.fingerprint)
            assert entry.digest == page.digest
            assert await archive.read(entry.archived) == page
            for item in await results.items_of("small", page.fingerprint):
                assert item.scraped_at == page.fetched_at
        await archive.close()
        await results.close()

    archived_pages = archived(address)
    asyncio.run(check())


def test_without_an_archive_only_the_digest_is_kept(folder: Folder, site: Site) -> None:
    assert folder.shoal("crawl", "small.py").code == 3
    record = folder.find("small", f"{site.url}a")
    assert record is not None
    fingerprint = record.fingerprint

    async def entry() -> PageLog:
        results = SqliteResults(folder.path / "shoal.db")
        (page,) = await results.pages_of("small", fingerprint)
        await results.close()
        return page

    page = asyncio.run(entry())
    assert (len(page.digest), page.archived) == (PAGE_DIGEST_BYTES, "")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("ftp://me:s3cr3t@x", "no archive for 'ftp://me:***@x' (supported: file:///dir, s3://"),
        ("raw", "no archive for 'raw'"),
        ("file://raw", "write file:///dir"),
        ("file:small.py", "small.py: Not a directory: the archive must be a folder"),
        ("file:///proc/x", "file:/proc/x: No such file or directory: nothing can be stored"),
        ("s3://", "write s3://bucket/prefix"),
    ],
)
@pytest.mark.parametrize("command", ["crawl", "worker"])
def test_an_address_that_leads_nowhere(
    folder: Folder, site: Site, command: str, address: str, says: str
) -> None:
    ended = folder.shoal(command, "small.py", "--archive", address)
    assert_refused(folder, ended, says)
    assert not site.hits


def test_a_folder_that_cannot_be_written(folder: Folder, site: Site) -> None:
    (folder.path / "raw").mkdir(mode=0o555)
    command = ("crawl", "small.py", "--archive", "file:raw")
    ended = folder.shoal(*command, within=obeying_permissions())
    assert_refused(folder, ended, "Permission denied: the archive must be a folder that can be")
    assert not site.hits


def test_a_wrong_format(folder: Folder) -> None:
    ended = folder.shoal("crawl", "small.py", "--archive-format", "zip")
    assert_refused(folder, ended, "'zip' is none of blobs, warc")


@pytest.mark.parametrize(
    ("library", "options", "extra"),
    [
        ("obstore", ("--archive", "s3://bucket/x"), "s3"),
        ("warcio", ("--archive", "file:raw", "--archive-format", "warc"), "warc"),
    ],
)
def test_a_missing_extra_is_named(
    folder: Folder, library: str, options: tuple[str, ...], extra: str
) -> None:
    hidden = folder.path / "hidden"
    hidden.mkdir()
    (hidden / f"{library}.py").write_text(NO_LIBRARY.format(name=library))
    ended = folder.shoal("crawl", "small.py", *options, env={"PYTHONPATH": str(hidden)})
    assert_refused(folder, ended, f"needs an extra: pip install 'shoal[{extra}]'")


def test_a_bucket(
    folder: Folder, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Rclone(tmp_path / "rclone") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        crawl = ("crawl", "small.py", "--workers", "2", "--archive")
        ended = folder.shoal(*crawl, "s3://nowhere/x")
        assert_refused(folder, ended, "s3://nowhere/x: there is no such bucket: make it first")
        wrong = {"AWS_SECRET_ACCESS_KEY": "s3cr3t"}
        ended = folder.shoal(*crawl, f"s3://{BUCKET}/x", env=wrong)
        assert_refused(folder, ended, "access denied (SignatureDoesNotMatch)")
        assert not site.hits
        assert folder.shoal(*crawl, f"s3://{BUCKET}/x").code == 3
        assert sorted(map(path_of, archived(f"s3://{BUCKET}/x"))) == ARCHIVED
        server.kill()
        ended = folder.shoal(*crawl, f"s3://{BUCKET}/x")
    away = f"s3://{BUCKET}/x: cannot reach the service (AWS_ENDPOINT_URL)"
    assert ended.code == 2
    assert ended.err.startswith(f"shoal: cannot be reached: {away}")
    assert ended.err.count("\n") == 1
