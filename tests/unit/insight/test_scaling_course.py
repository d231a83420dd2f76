"""A crawl whose hosts come and go, simulated: as soon done as by the largest fleet, by few."""

from __future__ import annotations

from math import ceil

import pytest
from benchmarks.autoscale import chart_of
from benchmarks.autoscale_course import MOST, SCENE, Arrival, Course, autoscaled, fixed, just_enough

from support.markdown import ROOT

SCENES = {
    "hosts come and go": SCENE,
    "one host": [Arrival(0, 1, 600)],
    "few pages of many hosts": [Arrival(0, 200, 20)],
    "one that lasts": [Arrival(0, 40, 100), Arrival(0, 1, 1500)],
    "more and more": [Arrival(at, 5, 300) for at in range(0, 600, 60)],
}


@pytest.fixture(scope="module", params=SCENES)
def courses(request: pytest.FixtureRequest) -> tuple[Course, Course]:
    scene = SCENES[request.param]
    return autoscaled(scene), fixed(scene)


def test_it_is_done_as_soon_as_by_the_largest_fleet(courses: tuple[Course, Course]) -> None:
    scaled, always = courses
    ramp_s = 75.0  # 20 workers are there after five steps.
    assert scaled.seconds <= always.seconds * 1.1 + ramp_s
    assert scaled.worker_s <= always.worker_s * 1.02


def test_and_costs_less_than_half_where_hosts_come_and_go() -> None:
    assert autoscaled().worker_s < 0.5 * fixed().worker_s
    assert autoscaled().seconds < 1.02 * fixed().seconds


def test_and_little_more_than_a_fleet_that_is_always_just_large_enough() -> None:
    """The rest is patience: two minutes before the first is released, and one after the other."""
    least = just_enough()
    assert least.seconds < 1.02 * fixed().seconds
    assert least.worker_s < autoscaled().worker_s < 1.3 * least.worker_s


def test_it_never_has_more_workers_than_hosts_can_use(courses: tuple[Course, Course]) -> None:
    for before, after in courses[0].changes:
        if after.workers > before.workers:
            assert after.workers <= max(ceil(after.of_use), 1), after
    assert max(moment.workers for moment in courses[0].moments) <= MOST


def test_the_picture_says_why() -> None:
    drawn = chart_of(autoscaled(), fixed())
    assert "30 hosts at 1/s wait for workers" in drawn
    assert "nothing is to be done" in drawn


def test_the_guide_has_these_figures() -> None:
    guide = (ROOT / "docs/guides/autoscale.md").read_text("utf-8")
    scaled, always, least = autoscaled(), fixed(), just_enough()
    short = SCENES["few pages of many hosts"]
    for said in (
        f"{scaled.seconds / always.seconds - 1:.0%} longer",
        f"{scaled.worker_s / always.worker_s:.0%} of the worker-hours",
        f"would need {least.worker_s / always.worker_s:.0%}:",
        f"do in {fixed(short).seconds:.0f} s takes {autoscaled(short).seconds:.0f} s",
    ):
        assert said.replace("%", " %") in guide.replace("\n", " "), said
