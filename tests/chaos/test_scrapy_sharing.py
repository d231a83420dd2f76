"""Two Scrapy processes on one site divide it, and keep its limits together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.crowds import EVEN_S, Crowded
from support.scrapy_projects import assert_in_order, counted
from support.scrapy_scenes import scene, wait_for_beats
from support.scrapy_site import TroubleSite
from support.until import until_now

PAGES = 400
ROOM = 8
LINKS = [f"/item/{number}" for number in range(PAGES)]
ITEMS = {f"S{number}": 1 for number in range(PAGES)}


class CrowdedShop(Crowded, TroubleSite):
    """A shop that counts requests in flight by User-Agent."""

    def __init__(self, links: Sequence[str]) -> None:
        super().__init__(links, takes_s=EVEN_S)


@pytest.mark.rare
@pytest.mark.alone  # A process that gets less CPU time does less of the work.
def test_two_processes_do_as_much(tmp_path: Path) -> None:
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": ROOM}
    with scene(tmp_path, LINKS, settings=settings, site_of=CrowdedShop) as (site, _, project):
        assert isinstance(site, CrowdedShop)
        other = project.copy(tmp_path / "other")
        site.held.update(LINKS)
        with project.crawling("things") as one, other.crawling("things") as two:
            until_now("the first pages", lambda: len(site.hits) > ROOM)
            wait_for_beats(project.queue, "things", 2)
            site.held.clear()
            ends = [one.wait(), two.wait()]
        for ended in ends:
            assert_in_order(ended)
        assert site.most == ROOM
    first, second = project.items(), other.items()
    assert counted(first + second, "sku") == ITEMS
    assert 0.75 < len(first) / len(second) < 1 / 0.75


@pytest.mark.rare
@pytest.mark.alone
def test_one_that_joins_late_has_its_share(tmp_path: Path) -> None:
    """It gets one although the first process holds all the room."""
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": ROOM, "USER_AGENT": "first"}
    links = [f"/item/{number}" for number in range(5 * PAGES)]
    with scene(tmp_path, links, settings=settings, site_of=CrowdedShop) as (site, _, project):
        assert isinstance(site, CrowdedShop)
        other = project.copy(tmp_path / "other")
        other.set(USER_AGENT="second")
        with project.crawling("things") as one:
            until_now("all for one", lambda: site.in_flight["first"] == ROOM)
            with other.crawling("things") as two:
                until_now("a page of the second", lambda: site.visits["second"] > 0)
                site.visits_of_next(PAGES // 4)
                shares = site.visits_of_next(PAGES)
                ends = [one.wait(), two.wait()]
        for ended in ends:
            assert_in_order(ended)
        assert site.most == ROOM
    assert 0.7 < shares["first"] / shares["second"] < 1 / 0.7, shares
    items = counted(project.items() + other.items(), "sku")
    assert items == {f"S{number}": 1 for number in range(5 * PAGES)}
