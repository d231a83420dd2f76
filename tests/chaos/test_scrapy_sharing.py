"""Two Scrapy processes on one site: they divide it, and keep together to what it allows."""

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
    """A shop that counts who is there."""

    def __init__(self, links: Sequence[str]) -> None:
        super().__init__(links, takes_s=EVEN_S)


@pytest.mark.rare
@pytest.mark.alone  # Whom the machine gives less time does less of the work.
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
