"""The dashboard in deploy/grafana: it is what its script makes, and asks for what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.insight.metrics import METRICS
from support.markdown import ROOT
from support.prometheus import metrics_in, promtool

GRAFANA = ROOT / "deploy/grafana"
FILE = GRAFANA / "dashboards/shoal.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
KINDS = {metric.name: metric.kind for metric in METRICS}
LABELS = {label for metric in METRICS for label in metric.labels} | {"le"}


def expressions() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel.get("targets", [])]


def test_it_is_what_its_script_makes() -> None:
    made = subprocess.run(
        [sys.executable, GRAFANA / "dashboard.py"], capture_output=True, text=True, check=True
    )
    assert made.stdout == FILE.read_text("utf-8")


def test_every_metric_exists_and_every_rate_is_that_of_a_counter() -> None:
    asked = "\n".join(expressions())
    assert metrics_in(asked) <= KINDS.keys()
    rates = metrics_in("\n".join(re.findall(r"rate\(\w+", asked)))
    assert {KINDS[name] for name in rates} == {"counter", "histogram"}


def test_lines_are_named_by_labels_that_exist() -> None:
    texts = " ".join(
        target["legendFormat"] for panel in PANELS for target in panel.get("targets", [])
    )
    assert set(re.findall(r"\{\{(\w+)\}\}", texts)) <= LABELS
    by = {
        label.strip()
        for labels in re.findall(r"by \(([\w, ]*)\)", "\n".join(expressions()))
        for label in labels.split(",")
    }
    assert by - {""} <= LABELS


def cells() -> Iterator[tuple[int, int]]:
    for panel in PANELS:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                yield x, y


def test_panels_have_names_and_places_of_their_own() -> None:
    assert all(panel["title"] for panel in PANELS)
    places = list(cells())
    assert len(places) == len(set(places))
    rows = [panel["gridPos"]["y"] for panel in PANELS if panel["type"] == "row"]
    assert len(places) == 24 * (max(y for _, y in places) + 1), "no holes"
    assert rows == sorted(rows)


def test_what_grafana_reads_first_is_valid() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/shoal.yml").read_text())[
        "datasources"
    ]
    assert (source["type"], source["url"]) == ("prometheus", "${PROMETHEUS_URL}")
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/shoal.yml").read_text())[
        "providers"
    ]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"


@pytest.mark.rare
def test_promtool_takes_every_expression(tmp_path: Path) -> None:
    rules = [
        {"record": f"r{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(expressions())
    ]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)
