"""A crawl whose hosts come and go, simulated: as soon done as by the largest fleet, by few."""

from __future__ import annotations

from math import ceil

import pytest
from benchmarks.autoscale import chart_of
from benchmarks.autoscale_course import MOST, SCENE, Arrival, Course, autoscaled, fixed

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


def test_it_never_has_more_workers_than_hosts_can_use(courses: tuple[Course, Course]) -> None:
    for before, after in courses[0].changes:
        if after.workers > before.workers:
            assert after.workers <= max(ceil(after.of_use), 1), after
    assert max(moment.workers for moment in courses[0].moments) <= MOST


def test_the_picture_says_why() -> None:
    drawn = chart_of(autoscaled(), fixed())
    assert "30 hosts at 1/s wait for workers" in drawn
    assert "nothing is to be done" in drawn
