"""Each alert: the crawl that has it, and crawls that nearly have it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.alerts.conditions import ALL, CONDITIONS, View, findings
from shoal.alerts.limits import Limits
from shoal.core.exits import Exit
from shoal.core.histograms import Histogram
from shoal.core.identities import Account, AccountState
from shoal.frontier.values import CrawlState
from shoal.insight.history import point_of
from shoal.insight.sample import Sample
from support.samples import BEGIN, host, sample, worker

THREE = [worker("a", pages_per_s=8.0), worker("b", pages_per_s=8.0), worker("c", pages_per_s=8.0)]


def account(name: str, why: str = "") -> Account:
    """One that is banned."""
    state = AccountState(is_banned=True, why=why)
    return Account(name=f"shop#{name}", exit=Exit(id=f"@shop#{name}", pool="@shop"), state=state)


def saved(batches: int, total_s: float) -> Histogram:
    return Histogram(total_s, [batches])


def found(*course: Sample, limits: Limits | None = None) -> dict[str, str]:
    """What is found at the end of a course, with its texts."""
    view = View(
        course[-1],
        [point_of(one) for one in course],
        limits or Limits(),
        course[-2] if len(course) > 1 else None,
    )
    return {name: finding.text for name, finding in findings(view).items()}


def course(*moments: tuple[float, dict[str, Any]], **always: Any) -> list[Sample]:
    return [sample(minute, **always, **said) for minute, said in moments]


BUSY: dict[str, Any] = {"workers": [worker()], "pages_per_s": 1.0}
WRONG: dict[str, list[Sample]] = {
    "queue_grows": course(
        (0, {"added": 2000, "waiting": 1000, "done": 1000, "sent": 1000, "items": 1}),
        (60, {"added": 9000, "waiting": 4000, "done": 5000, "sent": 5000, "items": 9}),
        **BUSY,
    ),
    "failures": course(
        (0, {"added": 900, "waiting": 800, "done": 100, "sent": 100}),
        (5, {"added": 900, "waiting": 724, "done": 176, "retries": 24, "sent": 200}),
        **BUSY,
    ),
    "blocked": course((0, {"sent": 0}), (5, {"sent": 100, "blocked": 11}), **BUSY),
    "concentration": course(
        (0, {"added": 1000, "done": 500, "retries": 40}),
        (
            5,
            {
                "added": 1000,
                "done": 900,
                "retries": 60,
                "failing": [host("a", failed=50), host("b", failed=9), host("c", failed=1)],
            },
        ),
        **BUSY,
    ),
    "only_duplicates": course(
        (0, {"added": 900, "waiting": 500, "duplicates": 100, "sent": 100, "items": 5}),
        (60, {"added": 900, "waiting": 300, "duplicates": 900, "sent": 300, "items": 5}),
        **BUSY,
    ),
    "stalled": course(
        (0, {"added": 900, "waiting": 500, "sent": 400}),
        (15, {"added": 900, "waiting": 500, "sent": 400}),
        **BUSY,
    ),
    "no_workers": course((0, {"waiting": 5})),
    "slow_worker": course((0, {"waiting": 5, "workers": [*THREE, worker("d", pages_per_s=1.9)]})),
    "slow_store": course(
        (
            0,
            {"workers": [worker("a", saves=saved(10, 1.0)), worker("gone", saves=saved(999, 9.0))]},
        ),
        (1, {"workers": [worker("a", saves=saved(12, 12.0))]}),
    ),
    "late": course((0, {"waiting": 90, "done": 5, "deadline": BEGIN + 60}), **BUSY),
    "dead": course((0, {"done": 98, "dead": 2})),
    "banned_accounts": course(
        (0, {"banned": [account("alice", "wrong password"), account("bob")]})
    ),
    "fewer_items": course((0, {"state": CrawlState.FINISHED, "items": 49, "items_before": 100})),
}
TEXTS = {
    "queue_grows": "its queue grew from 1,000 to 4,000 tasks in 1h, and its ETA rises",
    "failures": "24% of 100 tries failed lately",
    "blocked": "11% of 100 requests were blocked lately",
    "concentration": "100% of its failures are those of a, b, c",
    "only_duplicates": "100% of 800 links of the last hour were known already, and it has no items",
    "stalled": "nothing was fetched for 15m, and 500 tasks wait",
    "no_workers": "no worker is running, and 5 tasks wait",
    "slow_worker": "worker d is slow: 1.9 pages/s, the median has 8.0",
    "slow_store": "results take 5.5 s to store",
    "late": "late: its window ends 15 Jan 08:01 UTC, at this pace it is done 15 Jan 08:01 UTC",
    "dead": "2.0% of 100 pages are dead",
    "banned_accounts": "2 accounts are banned (shop#alice: wrong password; shop#bob)",
    "fewer_items": "it found 49 items, 100 the last time",
}


@pytest.mark.parametrize("name", [condition.name for condition in CONDITIONS])
def test_a_crawl_that_has_it(name: str) -> None:
    assert found(*WRONG[name]) == {name: TEXTS[name]}


@pytest.mark.parametrize("name", [condition.name for condition in CONDITIONS])
def test_it_can_be_off(name: str) -> None:
    assert found(*WRONG[name], limits=Limits(off=(name,))) == {}


LATER = {"growing": "90m", "stalled": "20m"}
HIGHER = {
    **{"failures": 0.24, "blocked": 0.11, "concentration": 1.0, "duplicates": 1.0, "dead": 0.02},
    **{"slow_worker": 0.2, "slow_store": "6s", "fewer_items": 0.4},
}


@pytest.mark.parametrize("name", sorted(WRONG.keys() - {"late", "no_workers", "banned_accounts"}))
def test_limits_are_those_of_shoal_toml(name: str) -> None:
    limits = Limits(**(LATER | HIGHER))  # type: ignore[arg-type]
    assert found(*WRONG[name], limits=limits) == {}


def last(name: str, **changed: Any) -> list[Sample]:
    """The course of an alert, with an end that is different."""
    *before, end = WRONG[name]
    kept = {
        field: getattr(end.stats, field)
        for field in ("added", "waiting", "done", "dead", "retries", "sent", "items", "blocked")
    }
    kept |= {"duplicates": end.stats.duplicates, "state": end.stats.state}
    own = {"workers": end.workers, "failing": end.failing, "items_before": end.items_before}
    own |= {"deadline": end.deadline, "pages_per_s": end.stats.pages_per_s}
    return [*before, sample((end.at - BEGIN) / 60, **(kept | own | changed))]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("queue_grows", {"waiting": 1100}),
        ("queue_grows", {"pages_per_s": 9.0}),
        ("queue_grows", {"state": CrawlState.PAUSED}),
        ("failures", {"retries": 20, "done": 180}),
        ("failures", {"retries": 49, "done": 100}),
        ("blocked", {"blocked": 10}),
        ("blocked", {"sent": 49}),
        ("concentration", {"failing": [host("a", failed=48)], "retries": 60}),
        ("concentration", {"failing": [host("a", failed=60, done=500)]}),
        ("concentration", {"retries": 40}),
        ("only_duplicates", {"items": 6}),
        ("only_duplicates", {"added": 910}),
        ("stalled", {"sent": 401}),
        ("stalled", {"waiting": 0}),
        ("stalled", {"state": CrawlState.PAUSED}),
        ("no_workers", {"workers": [worker()]}),
        ("no_workers", {"waiting": 0}),
        ("no_workers", {"state": CrawlState.NEW}),
        ("slow_worker", {"workers": [*THREE, worker("d", pages_per_s=2.1)]}),
        ("slow_worker", {"workers": [THREE[0], worker("d", pages_per_s=0.1)]}),
        ("slow_store", {"workers": [worker("a", saves=saved(12, 11.0))]}),
        ("slow_store", {"workers": [worker("new", saves=saved(1, 99.0))]}),
        ("late", {"pages_per_s": 9.0}),
        ("late", {"state": CrawlState.FINISHED, "waiting": 0}),
        ("banned_accounts", {"banned": []}),
        ("dead", {"dead": 1, "done": 99}),
        ("dead", {"dead": 2, "done": 97}),
        ("fewer_items", {"items": 50}),
        ("fewer_items", {"items": 0, "items_before": 9}),
    ],
)
def test_a_crawl_that_nearly_has_it(name: str, changed: dict[str, Any]) -> None:
    assert name not in found(*last(name, **changed))


@pytest.mark.parametrize("name", ["queue_grows", "only_duplicates", "stalled"])
def test_what_must_last_is_not_found_before(name: str) -> None:
    assert found(*WRONG[name][1:]) == {}


def test_a_crawl_whose_workers_have_just_come_is_not_stalled() -> None:
    first, last = WRONG["stalled"]
    alone = sample(1, added=900, waiting=500, sent=400)
    assert found(first, alone, last) == {}


def test_a_full_backlog_is_a_slow_store() -> None:
    (text,) = found(sample(workers=[worker("a", backlog=301)])).values()
    assert text == "301 pages of worker a wait to be stored"


def test_a_worker_that_left_makes_no_store_slow() -> None:
    """Sums over all workers would show 2 batches in 59 s."""
    before = sample(
        0, workers=[worker("a", saves=saved(5, 1.0)), worker("b", saves=saved(98, 0.0))]
    )
    after = sample(1, workers=[worker("a", saves=saved(105, 60.0))])
    assert found(before, after) == {}


def test_of_many_accounts_few_are_named() -> None:
    (text,) = found(sample(banned=[account(f"u{number}") for number in range(1_004)])).values()
    assert text == "1,004 accounts are banned (shop#u0; shop#u1; shop#u2; 1,001 more)"


def test_a_crawl_without_any_course_has_nothing() -> None:
    assert found(sample()) == {}
    assert found(sample(state=CrawlState.NEW)) == {}


def test_every_alert_is_tested_and_named_once() -> None:
    assert WRONG.keys() | {"no_leader"} == ALL.keys()
    assert len(ALL) == len(CONDITIONS) + 1
