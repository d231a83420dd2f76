"""The cache of pages: small, private, and never in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from multidict import CIMultiDict

from shoal.core.task import Task
from shoal.fetch.port import Fetcher, Request, Response
from shoal.workbench import kept_pages
from shoal.workbench.kept_pages import CachingFetcher

URL = "https://shop.example/"


class Counting(Fetcher):
    def __init__(self, status: int = 200) -> None:
        self.asked = 0
        self._status = status

    async def fetch(self, request: Request) -> Response:
        self.asked += 1
        headers = CIMultiDict({"Content-Type": "text/html", "X": "\udce9"})
        return Response(request.task.url, self._status, headers, b"page", 0.1)

    async def close(self) -> None: ...


@pytest.fixture
def site() -> Counting:
    return Counting()


async def test_the_site_is_asked_once_for_each_request(tmp_path: Path, site: Counting) -> None:
    cache = CachingFetcher(tmp_path / "deep" / "cache", site)
    first = await cache.fetch(Request(Task(url=URL)))
    signed = Task(url=URL, headers={"X-Signed": "17:03"}, job_type="product")
    second = await cache.fetch(Request(signed))
    assert (site.asked, second.body, cache.kept_s is not None) == (1, first.body, True)
    assert (second.status, second.headers["content-type"]) == (200, "text/html")
    await cache.fetch(Request(Task(url=URL, method="POST", body="x")))
    assert (site.asked, cache.kept_s) == (2, None)
    assert (tmp_path / "deep" / "cache").stat().st_mode & 0o077 == 0


async def test_what_is_not_kept(tmp_path: Path, site: Counting) -> None:
    cache = CachingFetcher(tmp_path / "cache", site)
    for _ in range(2):
        await cache.fetch(Request(Task(url=URL), cookies="a=b"))
        await cache.fetch(Request(Task(url=URL, session="shop#alice")))
    assert site.asked == 4
    failing = CachingFetcher(tmp_path / "cache", Counting(503))
    await failing.fetch(Request(Task(url=URL)))
    assert not (tmp_path / "cache").exists()


async def test_what_is_damaged_is_asked_for_again(tmp_path: Path, site: Counting) -> None:
    cache = CachingFetcher(tmp_path, site)
    await cache.fetch(Request(Task(url=URL)))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\x93")
    await cache.fetch(Request(Task(url=URL)))
    assert site.asked == 2


async def test_it_stays_small(
    tmp_path: Path, site: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pages, "MAX_PAGES", 3)
    cache = CachingFetcher(tmp_path, site)
    for number in range(5):
        await cache.fetch(Request(Task(url=f"{URL}{number}")))
        for file in tmp_path.iterdir():  # As if each had been kept an hour after the one before.
            moment = file.stat().st_mtime - 3600
            os.utime(file, (moment, moment))
    assert len(list(tmp_path.iterdir())) == 3
    asked = site.asked
    await cache.fetch(Request(Task(url=f"{URL}4")))
    assert site.asked == asked
