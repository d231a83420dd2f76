"""A project with middlewares and a fingerprinter of its own, behind a login form."""

from __future__ import annotations

from pathlib import Path

from support.scrapy_projects import assert_in_order, counted
from support.scrapy_scenes import scene
from support.scrapy_site import PASSWORD, USER
from support.until import until_now

SPIDER = f"""
import os

import scrapy


class Members(scrapy.Spider):
    name = "members"
    start_urls = [url + "login" for url in os.environ["SITES"].split(",")]

    def parse(self, response):
        fields = {{"user": {USER!r}, "password": {PASSWORD!r}}}
        yield scrapy.FormRequest.from_response(response, formdata=fields, callback=self.inside)

    def inside(self, response):
        yield from response.follow_all(css="a", callback=self.thing)

    def thing(self, response):
        yield {{
            "sku": response.css(".sku::text").get(),
            "mark": response.request.headers["X-Mark"].decode(),
        }}
"""
MIDDLEWARES = """
from urllib.parse import urlsplit

from scrapy.utils.request import fingerprint


class Marking:
    def process_request(self, request, spider):
        request.headers["X-Mark"] = "downloader"


class Telling:
    def process_spider_output(self, response, result, spider):
        for found in result:
            if isinstance(found, dict):
                found["told"] = "spider"
            yield found

    async def process_spider_output_async(self, response, result, spider):
        async for found in result:
            if isinstance(found, dict):
                found["told"] = "spider"
            yield found


class WithoutTheSession:
    def fingerprint(self, request):
        bare = urlsplit(request.url)._replace(query="").geturl()
        return fingerprint(request.replace(url=bare))
"""
SETTINGS = {
    "DOWNLOADER_MIDDLEWARES": {"project.middlewares.Marking": 450},
    "SPIDER_MIDDLEWARES": {"project.middlewares.Telling": 450},
    "REQUEST_FINGERPRINTER_CLASS": "project.middlewares.WithoutTheSession",
}
PAGES = [*(f"/members/{number}" for number in range(3)), "/secret/3"]
LINKS = [f"{path}?sid={time}" for time in range(2) for path in PAGES]
ITEMS = {f"S{number}": 1 for number in range(4)}


def test_it_is_still_logged_in_after_a_kill(tmp_path: Path) -> None:
    with scene(tmp_path, LINKS, SPIDER, SETTINGS, middlewares=MIDDLEWARES) as (site, _, project):
        site.held.update(PAGES)
        with project.crawling("members") as crawl:
            until_now("all pages for members", lambda: site.fetches().keys() >= set(PAGES))
            crawl.kill_all()
        site.held.clear()
        assert_in_order(project.crawl("members"))
        stats = project.queue.stats("members")
    assert site.logins == 1
    assert counted(project.items(), "sku") == ITEMS
    assert {item["mark"] for item in project.items()} == {"downloader"}
    assert {item["told"] for item in project.items()} == {"spider"}
    # Once before the kill and once after it: the two spellings of a page are one request.
    assert {path: site.fetches()[path] for path in PAGES} == dict.fromkeys(PAGES, 2)
    assert (stats.state, stats.lost) == ("finished", len(PAGES))


def test_another_machine_is_logged_in_too(tmp_path: Path) -> None:
    # Each machine holds two tasks at most, so both get some.
    settings = {**SETTINGS, "CONCURRENT_REQUESTS": 2}
    with scene(tmp_path, LINKS, SPIDER, settings, middlewares=MIDDLEWARES) as (site, _, project):
        site.held.update(PAGES)
        other = project.copy(tmp_path / "other")
        with project.crawling("members") as one, other.crawling("members") as two:
            until_now("the login", lambda: site.logins)
            until_now("all to be leased", lambda: project.queue.stats("members").leased == 4)
            site.held.clear()
            ends = [one.wait(), two.wait()]
    for ended in ends:
        assert_in_order(ended)
    assert site.logins == 1
    assert len(project.items()) == len(other.items()) == 2
    assert counted(project.items() + other.items(), "sku") == ITEMS
