"""A Scrapy project publishes what it stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.publishing import told
from support.redis_servers import RedisServer
from support.scrapy_projects import ADDON, Project, assert_in_order
from support.scrapy_site import TroubleSite
from support.scrapy_spiders import THINGS
from support.sites import serving


@pytest.mark.rare
def test_items_and_the_end(tmp_path: Path, redis_server: RedisServer) -> None:
    address = f"redis-stream://127.0.0.1:{redis_server.port}?key=out"
    with serving(TroubleSite(["/list/10"])) as site:
        settings = {**ADDON, "SHOAL_PUBLISH": address, "SHOAL_RESULTS": "sqlite:///shoal.db"}
        project = Project(tmp_path / "machine", THINGS, settings, sites=[site.url])
        assert_in_order(project.crawl("things"))
    published = told(f"{redis_server.url}?key=out&type=stream")
    stored = [item["_key"] for item in project.queue.export("things")]
    assert sorted(item["_key"] for item in published) == sorted(stored)
    (end,) = told(f"{redis_server.url}?key=out:finished&type=stream")
    assert (end["_crawl"], end["counters"]["items"]) == ("things", len(stored))


@pytest.mark.rare
def test_what_is_not_stored_is_not_published(tmp_path: Path) -> None:
    settings = {**ADDON, "SHOAL_PUBLISH": "redis-stream://127.0.0.1:1?key=out"}
    project = Project(tmp_path / "machine", THINGS, settings, sites=["http://127.0.0.1:1/"])
    with project.crawling("things") as crawl:
        ended = crawl.wait()
    assert ended.code == 1
    assert "SHOAL_PUBLISH publishes what is stored: set SHOAL_RESULTS as well" in ended.err
