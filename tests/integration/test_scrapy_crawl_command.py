"""`shoal crawl scrapy:SPIDER` in a Scrapy project: a crawl like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scrapy_projects import ADDON, Project, counted
from support.scrapy_scenes import scene
from support.scrapy_site import TroubleSite
from support.scrapy_spiders import THINGS
from support.sites import serving

LINKS = ["/list/1", "/item/2", "/broken/3", "/gone/4"]
ITEMS = {f"S{number}": 1 for number in [*range(10, 20), 2]}
COMMAND = ("crawl", "scrapy:things", "--workers", "2")


def test_it_runs_status_explain_and_export(tmp_path: Path) -> None:
    with serving(TroubleSite(LINKS)) as site:
        project = Project(tmp_path / "machine", THINGS, ADDON, sites=[site.url])
        shoal = project.commands.shoal
        ended = shoal(*COMMAND, "--json")
        assert ended.code == 3, ended
        status = shoal("status", "things", "--json").json()
        explained = shoal("explain", "things", f"{site.url}item/2")
        dead = shoal("dead", "list", "things", "--json").json()
        exported = project.commands.export("things")
    assert (status["state"], status["dead"], status["dropped"]) == ("finished", 1, 1)
    assert status["done"] == 13
    assert [task["url"] for task in dead] == [f"{site.url}broken/3"]
    assert counted(exported, "sku") == ITEMS
    assert {item["_url"] for item in exported if item["sku"] == "S2"} == {f"{site.url}item/2"}
    assert explained.code == 0, explained
    assert "done" in explained.out
    assert set(site.fetches().values()) == {1}


ASKS = """
import os

import scrapy


class Asks(scrapy.Spider):
    name = "asks"

    async def start(self):
        site = os.environ["SITES"]
        yield scrapy.Request(site + "broken/3", method="POST", body="q=1", callback=self.thing)
        for _ in range(2):
            yield scrapy.Request(site + "item/2", dont_filter=True, callback=self.thing)
        yield scrapy.FormRequest(site + "item/2", formdata={"q": "[1]"}, callback=self.thing)

    def thing(self, response):
        float(response.css(".price::text").get())
"""


@pytest.mark.rare
def test_forms_and_copies_are_found_by_their_address(tmp_path: Path) -> None:
    with serving(TroubleSite(LINKS)) as site:
        project = Project(tmp_path / "machine", ASKS, ADDON, sites=[site.url])
        shoal = project.commands.shoal
        assert shoal("crawl", "scrapy:asks").code == 3
        explained = shoal("explain", "asks", f"{site.url}item/2", "--json").json()
        dead = shoal("dead", "show", "asks", f"{site.url}broken/3", "--json").json()
    each = [explained, *explained["others"]]
    assert [one["verdict"] for one in each] == ["done"] * 3
    methods = [one["record"]["task"].get("method", "GET") for one in each]
    assert sorted(methods) == ["GET", "GET", "POST"]
    assert (dead["task"]["method"], dead["others"]) == ("POST", [])


@pytest.mark.rare
def test_it_runs_on_redis_and_goes_on_where_it_was(tmp_path: Path) -> None:
    with scene(tmp_path, LINKS) as at:
        shoal = at.project.queue.shoal
        env = {"SITES": at.site.url}
        assert shoal(*COMMAND, env=env).code == 3
        at.site.is_mended = True
        at.retry_the_dead()
        ended = shoal(*COMMAND, env=env)
        assert ended.code == 0, ended
        assert counted(at.project.queue.export("things"), "sku") == ITEMS | {"S3": 1}
        assert at.project.queue.stats("things").dead == 0


FED = """
from shoal.scrapy.spiders import RedisSpider


class Fed(RedisSpider):
    name = "fed"
    redis_batch_size = "x"
"""


def test_a_wrong_setting_is_one_clear_line(tmp_path: Path) -> None:
    project = Project(tmp_path / "machine", FED, ADDON)
    ended = project.commands.shoal("crawl", "scrapy:fed")
    assert (ended.code, ended.err) == (2, "shoal: redis_batch_size = 'x': not a whole number\n")
    with project.crawling("fed") as running:
        ended = running.wait()
    assert ended.code != 0
    assert ended.err.endswith("shoal: redis_batch_size = 'x': not a whole number\n")


def test_a_spider_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    project = Project(tmp_path / "machine", THINGS, ADDON, sites=["http://127.0.0.1:1/"])
    ended = project.commands.shoal("crawl", "scrapy:nothing")
    assert ended.code == 2, ended
    assert "nothing" in ended.err
    assert "things" in ended.err
    assert "Traceback" not in ended.err
