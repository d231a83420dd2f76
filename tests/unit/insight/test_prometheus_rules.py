"""The rules in deploy/prometheus: the list of our own alerts, metrics that exist, and for each rule
a crawl that has it beside one that does not. promtool tries them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.alerts.conditions import ALL
from shoal.insight.metrics import METRICS
from support.markdown import ROOT
from support.prometheus import metrics_in, promtool

RULES = ROOT / "deploy/prometheus/shoal.rules.yml"
GROUPS = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}
RECORDED = {rule["record"] for group in GROUPS for rule in group["rules"] if "record" in rule}

Series = dict[str, str]
RUNNING: Series = {'shoal_crawl_state{state="running"}': "1x90"}
WAITING: Series = {'shoal_tasks{state="waiting"}': "500x90"}
WORK = RUNNING | WAITING
CASES: dict[str, tuple[Series, Series]] = {
    "ShoalQueueGrows": (
        RUNNING
        | {'shoal_tasks{state="waiting"}': "500+10x90", "shoal_crawl_eta_seconds": "10+1x90"},
        RUNNING
        | {'shoal_tasks{state="waiting"}': "500+10x90", "shoal_crawl_eta_seconds": "99-1x90"},
    ),
    "ShoalFailures": (
        {'shoal_failures_total{kind="dns"}': "0+3x90", "shoal_tasks_done_total": "0+7x90"},
        {'shoal_failures_total{kind="dns"}': "0+1x90", "shoal_tasks_done_total": "0+9x90"},
    ),
    "ShoalBlocked": (
        {"shoal_requests_blocked_total": "0+2x90", "shoal_requests_total": "0+10x90"},
        {"shoal_requests_blocked_total": "0+1x90", "shoal_requests_total": "0+11x90"},
    ),
    "ShoalConcentration": (
        {
            "shoal_failure_concentration_ratio": "0.9x90",
            "shoal_failing_hosts_ratio": "0.1x90",
            'shoal_failures_total{kind="dns"}': "0+3x90",
        },
        {
            "shoal_failure_concentration_ratio": "0.9x90",
            "shoal_failing_hosts_ratio": "0.9x90",
            'shoal_failures_total{kind="dns"}': "0+3x90",
        },
    ),
    "ShoalOnlyDuplicates": (
        RUNNING
        | {
            "shoal_links_duplicate_total": "0+9x90",
            "shoal_tasks_added_total": "99x90",
            "shoal_items_total": "5x90",
        },
        RUNNING
        | {
            "shoal_links_duplicate_total": "0+9x90",
            "shoal_tasks_added_total": "99x90",
            "shoal_items_total": "5+1x90",
        },
    ),
    "ShoalStalled": (
        WORK | {"shoal_requests_total": "7x90", "shoal_workers": "2x90"},
        WORK | {"shoal_requests_total": "7x90", "shoal_workers": "0x85 2x5"},
    ),
    "ShoalNoWorkers": (WORK | {"shoal_workers": "0x90"}, RUNNING | {"shoal_workers": "0x90"}),
    "ShoalSlowWorker": (
        RUNNING
        | {f'shoal_worker_pages_total{{worker="{name}"}}': "0+60x90" for name in "abc"}
        | {'shoal_worker_pages_total{worker="slow"}': "0+10x90"},
        RUNNING
        | {f'shoal_worker_pages_total{{worker="{name}"}}': "0+60x90" for name in "abc"}
        | {'shoal_worker_pages_total{worker="slow"}': "0+20x90"},
    ),
    "ShoalSlowStore": (
        {
            'shoal_worker_save_seconds_sum{worker="a"}': "0+60x90",
            'shoal_worker_save_seconds_count{worker="a"}': "0+10x90",
        },
        {
            'shoal_worker_save_seconds_sum{worker="a"}': "0+40x90",
            'shoal_worker_save_seconds_count{worker="a"}': "0+10x90",
            'shoal_worker_backlog_pages{worker="a"}': "300x90",
        },
    ),
    "ShoalLate": (
        RUNNING
        | {
            "shoal_crawl_eta_seconds": "600x90",
            "shoal_crawl_deadline_timestamp_seconds": "5000x90",
        },
        RUNNING
        | {"shoal_crawl_eta_seconds": "60x90", "shoal_crawl_deadline_timestamp_seconds": "5000x90"},
    ),
    "ShoalDead": (
        {'shoal_tasks{state="dead"}': "2x90", "shoal_tasks_done_total": "98x90"},
        {'shoal_tasks{state="dead"}': "2x90", "shoal_tasks_done_total": "97x90"},
    ),
    "ShoalBannedAccounts": (
        {"shoal_banned_accounts": "0x60 1x30"},
        {"shoal_banned_accounts": "0x90"},
    ),
    "ShoalFewerItems": (
        {"shoal_items_total": "49x90", "shoal_crawl_previous_items": "100x90"},
        {"shoal_items_total": "50x90", "shoal_crawl_previous_items": "100x90"},
    ),
}
OF_NO_CRAWL: dict[str, tuple[Series, Series]] = {
    "ShoalNoLeader": ({"shoal_leader": "0x90"}, {"shoal_leader": "1x90"}),
    "ShoalDown": ({'up{job="shoal"}': "0x90"}, {'up{job="shoal"}': "1x90"}),
}


def camel(name: str) -> str:
    return "Shoal" + "".join(word.title() for word in name.split("_"))


def test_the_list_is_that_of_our_own_alerts() -> None:
    assert list(ALERTS) == [*map(camel, ALL), "ShoalDown"]
    assert CASES.keys() | OF_NO_CRAWL.keys() == ALERTS.keys()
    for rule in ALERTS.values():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}


def test_every_metric_of_a_rule_exists() -> None:
    text = RULES.read_text("utf-8")
    named = metrics_in(re.sub("crawl:shoal_[a-z_:0-9]+", "", text)) - {"shoal_rules"}
    assert named
    assert named <= {metric.name for metric in METRICS}
    recorded = set(re.findall("crawl:[a-z_:0-9]+", text))
    assert recorded == RECORDED


@pytest.mark.rare
def test_promtool_takes_the_example_of_a_configuration() -> None:
    promtool("check", "config", ROOT / "deploy/prometheus/prometheus.yml")


def series(crawl: str | None, said: Series) -> list[dict[str, str]]:
    """The series of a test file. Those of a crawl get its labels."""
    made = []
    for name, values in said.items():
        metric, _, labels = name.partition("{")
        own = [labels.removesuffix("}")] if labels else []
        crawls = [f'job="shoal",crawl="{crawl}",schedule=""'] if crawl else []
        made.append({"series": f"{metric}{{{','.join(crawls + own)}}}", "values": values})
    return made


def try_rule(folder: Path, alert: str, inputs: list[dict[str, str]], fires: list[str]) -> None:
    """Have promtool see whether an alert fires after 80 minutes, and for what: labels."""
    asked = f'count by (crawl) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    expected = {
        "expr": asked,
        "eval_time": "80m",
        "exp_samples": [{"labels": labels, "value": 1} for labels in fires],
    }
    tests: dict[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": inputs, "promql_expr_test": [expected]}],
    }
    file = folder / "test.yml"
    file.write_text(json.dumps(tests))
    promtool("test", "rules", file)


@pytest.mark.rare
@pytest.mark.parametrize("alert", CASES)
def test_a_rule_fires_for_the_crawl_that_has_it_and_no_other(alert: str, tmp_path: Path) -> None:
    bad, good = CASES[alert]
    try_rule(tmp_path, alert, [*series("bad", bad), *series("good", good)], ['{crawl="bad"}'])


@pytest.mark.rare
@pytest.mark.parametrize("alert", OF_NO_CRAWL)
def test_a_rule_about_no_crawl_fires(alert: str, tmp_path: Path) -> None:
    bad, good = OF_NO_CRAWL[alert]
    try_rule(tmp_path, alert, series(None, bad), ["{}"])
    try_rule(tmp_path, alert, series(None, good), [])
