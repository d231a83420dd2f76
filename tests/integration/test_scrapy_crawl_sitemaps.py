"""Sitemaps of a crawl that Scrapy's workers run: they read them as ours do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from support.scrapy_projects import ADDON, Project
from support.sitemaps import SiteWithSitemaps, index, urlset
from support.sites import serving

SPIDER = """
import scrapy


class Shop(scrapy.Spider):
    name = "shop"

    async def start(self):
        return
        yield

    def parse(self, response):
        yield {"url": response.url, "depth": response.meta.get("depth", 0)}
"""

CRAWL_SPIDER = """
from scrapy.spiders import CrawlSpider


class Shop(CrawlSpider):
    name = "shop"
    start_urls = []

    def parse_start_url(self, response):
        yield {"url": response.url, "depth": response.meta.get("depth", 0)}
"""


@pytest.mark.parametrize("spider", [SPIDER, CRAWL_SPIDER], ids=["Spider", "CrawlSpider"])
def test_workers_of_scrapy_read_sitemaps(tmp_path: Path, spider: str) -> None:
    with serving(SiteWithSitemaps()) as site:
        one, two, three = site.pages(1, 2, 3)
        site.bodies = {
            "/robots.txt": b"User-agent: *\nDisallow: /robots.txt\nSitemap: /index.xml",
            "/index.xml": index(
                "/a.xml.gz", "/moved/b.xml", "/moved/moved/b.xml", "/b.xml", "/cut.xml", "/gone.xml"
            ),
            "/a.xml.gz": gzip.compress(urlset(one, two)),
            "/b.xml": urlset(two, three, "ftp://a.example/4"),
            "/cut.xml": urlset(three)[:-5],
        }
        settings = {"ROBOTSTXT_OBEY": True, "ROBOTSTXT_USER_AGENT": "shoal"}
        project = Project(tmp_path / "machine", spider, {**ADDON, **settings})
        shoal = project.commands.shoal
        seeded = shoal("seed", "shop", "--sitemap", site.url)
        assert seeded.code == 0, seeded
        ended = shoal("crawl", "scrapy:shop", "--json")
        assert ended.code == 3, ended
        items = project.commands.export("shop")
        assert sorted((item["url"], item["depth"]) for item in items) == [
            (page, 0) for page in (one, two, three)
        ]
        (dead,) = shoal("dead", "list", "shop", "--json").json()
    assert dead["url"] == f"{site.url}cut.xml"
    assert "not whole" in dead["reason"]
    summary = ended.json()
    assert (summary["dead"], summary["dropped"], summary["filtered"]) == (1, 1, 1)
    assert site.paths.count("/b.xml") == 1


def test_a_site_without_a_robots_txt_has_them_where_all_have_them(tmp_path: Path) -> None:
    with serving(SiteWithSitemaps()) as site:
        site.bodies = {"/sitemap.xml": urlset(*site.pages(1))}
        project = Project(tmp_path / "machine", SPIDER, ADDON)
        project.commands.shoal("seed", "shop", "--sitemap", site.url)
        ended = project.commands.shoal("crawl", "scrapy:shop")
        assert ended.code == 0, ended
        assert [item["url"] for item in project.commands.export("shop")] == site.pages(1)
