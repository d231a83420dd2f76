"""A crawl whose hosts come and go, simulated: as soon done as by the largest fleet, by few."""

from __future__ import annotations

from functools import cache
from math import ceil

import pytest
from benchmarks.autoscale import chart_of
from benchmarks.autoscale_course import MOST, SCENE, Arrival, Course, autoscaled, fixed, just_enough

from support.markdown import ROOT

PLOTTED = "hosts come and go"
SCENES = {
    PLOTTED: SCENE,
    "one host": [Arrival(0, 1, 600)],
    "few pages of many hosts": [Arrival(0, 200, 20)],
    "one that lasts": [Arrival(0, 40, 100), Arrival(0, 1, 1500)],
    "more and more": [Arrival(at, 5, 300) for at in range(0, 600, 60)],
}


@cache
def scaled(scene: str = PLOTTED) -> Course:
    return autoscaled(SCENES[scene])


@cache
def largest(scene: str = PLOTTED) -> Course:
    return fixed(SCENES[scene])


@cache
def least() -> Course:
    return just_enough()


@pytest.mark.parametrize("scene", SCENES)
def test_it_is_done_as_soon_as_by_the_largest_fleet(scene: str) -> None:
    ramp_s = 75.0  # 20 workers are there after five steps.
    assert scaled(scene).seconds <= largest(scene).seconds * 1.1 + ramp_s
    assert scaled(scene).worker_s <= largest(scene).worker_s * 1.02


def test_and_costs_less_than_half_where_hosts_come_and_go() -> None:
    assert scaled().worker_s < 0.5 * largest().worker_s
    assert scaled().seconds < 1.02 * largest().seconds


def test_and_little_more_than_a_fleet_that_is_always_just_large_enough() -> None:
    """The rest is patience: two minutes before the first is released, and one after the other."""
    assert least().seconds < 1.02 * largest().seconds
    assert least().worker_s < scaled().worker_s < 1.3 * least().worker_s


@pytest.mark.parametrize("scene", SCENES)
def test_it_never_has_more_workers_than_hosts_can_use(scene: str) -> None:
    course = scaled(scene)
    for before, after in course.changes:
        if after.workers > before.workers:
            assert after.workers <= max(ceil(after.of_use), 1), after
    assert max(moment.workers for moment in course.moments) <= MOST


def test_the_picture_says_why() -> None:
    drawn = chart_of(scaled(), largest())
    assert "30 hosts at 1/s wait for workers" in drawn
    assert "nothing is to be done" in drawn


def test_the_guide_has_these_figures() -> None:
    guide = (ROOT / "docs/guides/autoscale.md").read_text("utf-8")
    short = "few pages of many hosts"
    for said in (
        f"{scaled().seconds / largest().seconds - 1:.0%} longer",
        f"{scaled().worker_s / largest().worker_s:.0%} of the worker-hours",
        f"would need {least().worker_s / largest().worker_s:.0%}:",
        f"do in {largest(short).seconds:.0f} s takes {scaled(short).seconds:.0f} s",
    ):
        assert said.replace("%", " %") in guide.replace("\n", " "), said
