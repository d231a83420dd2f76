"""Two machines on one crawl: neither closes before all of it is finished, and then both do."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.frontier.values import Stats
from support.rarely import first_then_rare
from support.redis_chaos import assert_adds_up
from support.scrapy_projects import EACH_VERSION, assert_in_order, counted
from support.scrapy_scenes import scene, wait_for_beats
from support.until import until_now

pytestmark = pytest.mark.parametrize("version", EACH_VERSION)

LISTS = [f"/list/{number}" for number in range(10, 20)]
LAST = "/list/99"
PAGES = {"/": 1, LAST: 1} | dict.fromkeys(LISTS, 1)
ITEMS = {f"/item/{number}": 1 for number in [*range(100, 200), *range(990, 1000)]}


def test_neither_closes_before_the_last_page_is_read(tmp_path: Path, version: str) -> None:
    with scene(tmp_path, [*LISTS, LAST], version=version) as (site, _, project):
        site.held.add(LAST)
        other = project.copy(tmp_path / "other")
        queue = project.queue
        with project.crawling("things") as one, other.crawling("things") as two:
            until_now("the page that is held", lambda: LAST in site.paths)
            until_now("all but one page", lambda: _only_one_is_left(queue.stats("things")))
            wait_for_beats(queue, "things", workers=2)
            assert not one.has_ended(), one.err
            assert not two.has_ended(), two.err
            site.held.clear()
            ends = [one.wait(), two.wait()]
        stats = queue.stats("things")
    for ended in ends:
        assert_in_order(ended)
    assert site.fetches() == PAGES | ITEMS
    assert counted(project.items() + other.items(), "path") == {
        path[1:]: count for path, count in ITEMS.items()
    }
    assert_adds_up(stats)
    assert (stats.state, stats.done, stats.lost) == ("finished", len(PAGES | ITEMS), 0)


def _only_one_is_left(stats: Stats) -> bool:
    return (stats.remaining, stats.leased) == (1, 1)


@pytest.mark.rare
@pytest.mark.parametrize(("persist", "times"), first_then_rare((True, 1), (False, 2)))
def test_a_finished_crawl_starts_over_unless_it_is_to_persist(
    tmp_path: Path, version: str, persist: bool, times: int
) -> None:
    with scene(
        tmp_path, ["/item/1"], settings={"SCHEDULER_PERSIST": persist}, version=version
    ) as at:
        assert_in_order(at.project.crawl("things"))
        assert_in_order(at.project.crawl("things"))
        stats = at.project.queue.stats("things")
    assert at.site.fetches() == {"/": times, "/item/1": times}
    assert (stats.state, stats.done) == ("finished", 2)
