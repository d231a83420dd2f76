"""shoal proxies simulate: what it shows, and that real crawls go as it says."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from shoal.exits.scenes import SPREAD, STRATEGIES
from support.banning_site import Ban, BanningSite, Limit
from support.exit_crawls import ExitFolder, assert_complete, bound, pages_of
from support.rarely import first_then_rare
from support.sites import serving

TOLERANCE = 0.25
"""So much may a real crawl differ from its simulation, in requests, blocks and the share of the
busiest exit; in time only upwards, for a machine has other things to do."""


@pytest.fixture
def folder(tmp_path: Path) -> ExitFolder:
    return ExitFolder(tmp_path)


def simulated(folder: ExitFolder, *args: str) -> dict[str, dict[str, Any]]:
    """The figures of each strategy."""
    ended = folder.call("proxies", "simulate", "dc", *args, "--json")
    assert ended.code == 0, ended
    return {figures["strategy"]: figures for figures in ended.json()["strategies"]}


def test_strategies_side_by_side(folder: ExitFolder) -> None:
    command = ("proxies", "simulate", "dc", "--exits", "10", "--pages", "150", "--ban-after", "12")
    shown = folder.call(*command, "--rate", "none", "--plot", "plan.svg", "--host", "shop.example")
    assert shown.code == 0, shown
    lines = shown.out.splitlines()
    assert lines[0].startswith("150 pages of shop.example by 10 exits of dc; an exit is banned")
    assert [line.split()[0] for line in lines[2:]] == list(STRATEGIES)
    drawn = ElementTree.fromstring((folder.path / "plan.svg").read_text("utf-8"))
    texts = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    for strategy in STRATEGIES:
        assert any(text.startswith(f"{strategy}: 1") for text in texts), texts


def test_it_can_be_repeated_and_adds_up(folder: ExitFolder) -> None:
    args = ("--exits", "5", "--pages", "100", "--ban-after", "8", "--rotation", "rested")
    first, again = (simulated(folder, *args, "--rate", "none")["rested"] for _ in range(2))
    assert first == again
    assert first["done"] + first["dead"] + first["left"] == 100
    assert first["requests"] == first["done"] + first["blocked"]
    assert first["exits_used"] == 5
    assert 0 < first["quarantines"] <= first["blocked"]
    moments = [at for at, _ in first["progress"]]
    assert moments == sorted(moments)
    assert moments[-1] == first["seconds"]


def test_the_rate_of_the_host_is_a_ceiling(folder: ExitFolder) -> None:
    figures = simulated(folder, *("--exits", "50", "--pages", "60", "--rate", "2/s"))
    assert all(each["seconds"] >= 59 / 2 for each in figures.values())


def test_pools_of_the_file_are_played_with_those_above_them(folder: ExitFolder) -> None:
    """All cheap exits are banned at once: the dear ones serve, and cost what they cost."""
    folder.put_pool("dc", bound(20), escalate_to="res")
    folder.put_pool("res", bound(5, first=20), cost={"per_request": 0.5}, budget="1000/day")
    played = simulated(
        folder, *("--pages", "40", "--ban-after", "3", "--rate", "none", "--rotation", "rested")
    )["rested"]
    assert played["done"] == 40
    dear = played["cost"] / 0.5
    assert dear == int(dear)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("dc",), "no pool 'dc'"),
        (("dc", "--exits", "3", "--rotation", "fastest"), "one of rested, random, best, sticky"),
        (("dc", "--exits", "3", "--ban-for", "soon"), "not a time span: 'soon'"),
        (("dc", "--exits", "3", "--pages", "1", "--plot", "no/such.svg"), "No such file"),
    ],
)
def test_mistakes_are_one_line(folder: ExitFolder, args: tuple[str, ...], words: str) -> None:
    ended = folder.call("proxies", "simulate", *args)
    assert ended.code == 2
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.rare
@pytest.mark.alone
@pytest.mark.parametrize("rotation", first_then_rare("best", "rested"))
def test_a_real_crawl_goes_as_simulated(folder: ExitFolder, rotation: str) -> None:
    """The same pool and the same site: exits are banned one after the other."""
    pages, exits, after, latency_s, room = 60, 16, 5, 0.3, 3
    folder.put_pool("dc", bound(exits), rotation=rotation, concurrency=2)
    played = simulated(
        folder,
        *("--pages", str(pages), "--ban-after", str(after), "--latency", str(latency_s)),
        *("--rate", "none", "--concurrency-per-host", str(room), "--rotation", rotation),
    )[rotation]
    with serving(BanningSite(pages)) as site:
        site.takes_s, site.spread = latency_s, SPREAD
        site.limit = Limit(after, Ban.FORBIDDEN)
        folder.put_spider(site.urls, concurrency_per_host=room, robots=False)
        assert folder.shoal("crawl", "links.py", "--workers", "1").code == 0
        assert_complete(folder, site, pages)
    real = pages_of(site.log)
    blocked = sum(seen.ban is not None for seen in real)
    busiest = max(site.sources.values()) / len(real)
    took_s = real[-1].at - real[0].at
    print(f"{rotation}: {len(real)} requests, {blocked} blocked, {busiest:.3f}, {took_s:.1f} s")
    print(f"simulated: { ({**played, 'progress': ...}) }")
    assert len(real) == pytest.approx(played["requests"], rel=TOLERANCE)
    assert blocked == pytest.approx(played["blocked"], rel=TOLERANCE, abs=3)
    assert busiest == pytest.approx(played["busiest_share"], rel=TOLERANCE)
    assert took_s > played["seconds"] * (1 - TOLERANCE)
