"""Workers die and the archive goes away, in the middle of a crawl that keeps its raw pages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.archive import open_archive
from shoal.config import Rules
from shoal.frontier.admission import Admission
from shoal.results.sqlite.store import SqliteResults
from support.crashes import has_crashed
from support.kills import kill_workers
from support.links import GatedSite, paths_of, put_spider
from support.processes import Folder, seeded_random
from support.rarely import first_then_rare
from support.s3_servers import BUCKET, Rclone
from support.sites import serving
from support.until import until_now

PAGES = 200
KILLS = 3
WORKERS = 2
WAITING, BACK = "waiting for the archive: ", "the archive is back"


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with serving(GatedSite(PAGES)) as site:
        yield site
        site.allowed = 10**9


@pytest.fixture
def folder(tmp_path: Path, site: GatedSite) -> Folder:
    folder = Folder(tmp_path)
    put_spider(folder, [site], rate="none", lease_s=3600)
    return folder


def crawl_into(archive: str, fmt: str = "blobs") -> tuple[str, ...]:
    options = ("--archive", archive, "--archive-format", fmt)
    return ("crawl", "links.py", "--workers", str(WORKERS), *options)


def assert_all_is_kept(folder: Folder, site: GatedSite, address: str) -> None:
    """Check that every page is done, and that the archive has all that the page log refers to."""
    stats = folder.stats("links")
    assert (stats.state, stats.done, stats.leased) == ("finished", PAGES + 1, 0)
    assert len(folder.export("links")) == PAGES + 1
    asyncio.run(_assert_log_is_right(folder, site, address))


async def _assert_log_is_right(folder: Folder, site: GatedSite, address: str) -> None:
    results = SqliteResults(folder.path / "shoal.db")
    archive = open_archive(address, "blobs")
    admission = Admission(Rules())
    for path in paths_of(PAGES):
        fingerprint = admission.fingerprint(site.url + path[1:])
        done = [p for p in await results.pages_of("links", fingerprint) if p.verdict == "done"]
        assert done, path
        for entry in done:
            page = await archive.read(entry.archived)
            assert (page.fingerprint, page.digest) == (fingerprint, entry.digest)
            assert path == "/" or page.body == f"<h1>{path}</h1>".encode()
    await archive.close()
    await results.close()


@pytest.mark.parametrize("fmt", first_then_rare("blobs", "warc"))
def test_killed_workers_leave_no_page_behind(folder: Folder, site: GatedSite, fmt: str) -> None:
    random = seeded_random("kills of workers that archive")
    with folder.running(*crawl_into("file:raw", fmt)) as crawl:
        moments = random.sample(range(1, PAGES), KILLS)
        kill_workers(crawl, site, WORKERS, moments, random)
        ended = crawl.wait()
    assert ended.code == 0, ended
    assert not has_crashed(ended.err), ended.err
    assert_all_is_kept(folder, site, f"file:{folder.path}/raw")


@pytest.mark.rare
def test_a_bucket_goes_away_and_comes_back(
    folder: Folder, site: GatedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"s3://{BUCKET}/links"
    with Rclone(tmp_path / "rclone") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        site.allowed = seeded_random("a bucket goes away").randrange(1, PAGES // 2)
        with folder.running(*crawl_into(address)) as crawl:
            until_now("requests under way", lambda: len(site.hits) > site.allowed)
            server.kill()
            site.allowed = 10**9
            until_now("somebody to notice", lambda: WAITING in crawl.err)
            done = folder.stats("links").done
            server.start()
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert done < PAGES
        assert 1 <= ended.err.count(BACK) == ended.err.count(WAITING) <= WORKERS
        assert not has_crashed(ended.err), ended.err
        assert_all_is_kept(folder, site, address)
