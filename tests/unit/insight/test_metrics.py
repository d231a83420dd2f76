"""Metrics: what they say, whether Prometheus can read it, and that every one is documented."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shoal.config import Rules
from shoal.core.counters import COUNTERS
from shoal.core.failures import FailureKind
from shoal.core.histograms import Histogram
from shoal.core.task import Task
from shoal.errors import MissingExtra
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.values import CrawlState
from shoal.insight.exposition import render_metrics, scrape
from shoal.insight.metrics import METRICS, families
from shoal.insight.sample import Survey
from support.markdown import ROOT, table_after
from support.prometheus import promtool
from support.samples import host, sample, survey_of, worker

GUIDE = ROOT / "docs" / "guides" / "metrics.md"
HOSTILE = 'a"} 1\n# HELP \\ \u202e\x1b[31m'
COUNTED: Any = {name: number for number, name in enumerate(COUNTERS, 100)}
TOOK = Histogram()
for seconds in (0.004, 0.2, 0.2, 99.0):
    TOOK.note(seconds)
EVERYTHING = survey_of(
    sample(
        **COUNTED,
        failures_by_kind={FailureKind.TIMEOUT: 3},
        own_counts={"sold_out": 2},
        crawl="shop@2026-11-15T03:00",
        schedule="shop",
        rules=Rules(sessions=("shop",)),
        state=CrawlState.FINISHED,
        deadline=1e9,
        items_before=7,
        wanted=3,
        started_at=5e8,
        workers=[worker("one:1", responses={"2xx": 3}, fetches=TOOK), worker("two:2")],
        failing=[host("slow.example", failed=50)],
        busiest=[host("slow.example", waiting=4)],
    ),
    sample(crawl=HOSTILE, pages_per_s=2.0, waiting=10, workers=[worker(HOSTILE)]),
)


def told(survey: Survey) -> dict[tuple[str, tuple[str, ...]], float]:
    """What a scrape says: by name and the values of labels, without those of the crawl."""
    text = render_metrics(survey)[0].decode()
    return {
        (
            one.name,
            tuple(v for k, v in sorted(one.labels.items()) if k not in ("crawl", "schedule")),
        ): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_counters_and_states_are_told() -> None:
    stats: Any = {
        "added": 10,
        "waiting": 3,
        "leased": 1,
        "done": 4,
        "dead": 2,
        "sent": 9,
        "blocked": 5,
    }
    scrape = told(survey_of(sample(**stats, started_at=1e9, pages_per_s=2.0)))

    assert scrape["shoal_tasks", ("waiting",)] == 3
    assert scrape["shoal_tasks", ("dead",)] == 2
    assert scrape["shoal_tasks_done_total", ()] == 4
    assert scrape["shoal_requests_blocked_total", ()] == 5
    assert scrape["shoal_crawl_eta_seconds", ()] == 2.0
    assert scrape["shoal_crawl_started_timestamp_seconds", ()] == 1e9
    assert scrape["shoal_crawl_state", ("running",)] == 1
    assert scrape["shoal_crawl_state", ("paused",)] == 0
    assert scrape["shoal_leader", ()] == 1


def test_what_is_not_known_is_not_told() -> None:
    scrape = told(survey_of(sample(waiting=3), leader=None))

    assert scrape["shoal_leader", ()] == 0
    names = {name for name, _ in scrape}
    assert not {"shoal_crawl_eta_seconds", "shoal_crawl_deadline_timestamp_seconds"} & names
    assert not any(name.startswith(("shoal_host_", "shoal_worker_")) for name in names)


def test_each_number_has_the_labels_that_are_declared() -> None:
    for family in families(EVERYTHING):
        assert family.values, f"{family.metric.name} is never told"
        for labels, _ in family.values:
            assert tuple(labels) == family.metric.labels


def test_every_counter_of_a_crawl_is_told() -> None:
    numbers = {
        value
        for family in families(EVERYTHING)
        for _, value in family.values
        if not isinstance(value, Histogram)
    }
    assert set(range(100, 100 + len(COUNTERS))) <= numbers


def test_a_histogram_counts_all_that_took_no_longer() -> None:
    scrape = told(survey_of(sample(workers=[worker("one", fetches=TOOK)])))
    buckets = {
        labels[0]: value
        for (name, labels), value in scrape.items()
        if name == "shoal_worker_fetch_seconds_bucket"
    }
    assert buckets["0.005"] == 1
    assert buckets["0.25"] == 3
    assert buckets["60.0"] == 3
    assert buckets["+Inf"] == scrape["shoal_worker_fetch_seconds_count", ("one",)] == 4
    assert scrape["shoal_worker_fetch_seconds_sum", ("one",)] == pytest.approx(99.404)


def test_names_follow_the_conventions() -> None:
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.help.endswith(".")


def test_two_workers_of_one_name_are_told_once() -> None:
    survey = survey_of(sample(workers=[worker("one", pages=1), worker("one", pages=2)]))
    assert told(survey)["shoal_worker_pages_total", ("one",)] == 1


def test_names_that_others_chose_break_nothing() -> None:
    text, _ = render_metrics(EVERYTHING)
    crawls = {
        one.labels["crawl"]
        for family in text_string_to_metric_families(text.decode())
        for one in family.samples
        if "crawl" in one.labels
    }
    assert crawls == {
        "shop@2026-11-15T03:00",
        'a"} 1\\n# HELP \\ \\u202e\\x1b[31m',
    }


def test_openmetrics_is_for_those_who_ask_for_it() -> None:
    plain, plain_type = render_metrics(EVERYTHING)
    open_metrics, its_type = render_metrics(EVERYTHING, "application/openmetrics-text")
    assert plain_type.startswith("text/plain")
    assert its_type.startswith("application/openmetrics-text")
    assert open_metrics.endswith(b"# EOF\n")
    assert not plain.endswith(b"# EOF\n")


async def test_hosts_are_told_if_asked_for(tmp_path: Path) -> None:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db", None) as frontier:
        await frontier.start("shop", Rules())
        entry = Admission(Rules()).admitted_as(Task(url="https://shop.example/"))
        await frontier.add("shop", [entry])
        plain, _ = await scrape(frontier, 1e9)
        more, _ = await scrape(frontier, 1e9, hosts=True)
    assert b'shoal_tasks{crawl="shop",schedule="",state="waiting"} 1.0' in plain
    assert b"shoal_host_" not in plain
    assert b'shoal_host_tasks_waiting{crawl="shop",host="shop.example",schedule=""} 1.0' in more


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtra, match=r"shoal\[metrics\]"):
        render_metrics(EVERYTHING)


def test_the_guide_has_every_metric() -> None:
    rows = [tuple(row) for row in table_after(GUIDE, "## The metrics")]
    assert rows == [
        (metric.name, metric.kind, ", ".join(metric.labels), metric.help) for metric in METRICS
    ]


def test_promtool_finds_nothing_to_say() -> None:
    text, _ = render_metrics(EVERYTHING)
    assert promtool("check", "metrics", given=text) == ""
