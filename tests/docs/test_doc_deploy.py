"""What deploy/ has autoscalers ask for is what is answered."""

from __future__ import annotations

from typing import Any

import yaml

from shoal.insight.advise.scaling import DOWN_AFTER_S, STEP_S, ZERO_AFTER_S
from shoal.insight.metrics import METRICS
from shoal.web.access import Role
from shoal.web.api import API
from shoal.web.api.monitoring import ScaleForm
from support.markdown import ROOT

COMPONENTS = ROOT / "deploy/kubernetes/components"


def document(path: str, kind: str) -> Any:
    documents = yaml.safe_load_all((COMPONENTS / path).read_text("utf-8"))
    return next(found for found in documents if found["kind"] == kind)["spec"]


def test_keda_asks_a_route_that_there_is_for_a_field_that_it_gives() -> None:
    asked = document("keda/scaledobject.yaml", "ScaledObject")
    (trigger,) = asked["triggers"]
    address, _, crawl = trigger["metadata"]["url"].rpartition("/")
    (route,) = (route for route in API if route.gives is ScaleForm)
    assert address.endswith(route.path.rpartition("/")[0])
    assert (crawl, route.role) == ("shop", Role.READ)
    assert trigger["metadata"]["valueLocation"] in ScaleForm.__struct_fields__
    assert trigger["metadata"]["targetValue"] == "1"
    assert asked["minReplicaCount"] == 0


def test_kubernetes_own_autoscaler_asks_for_a_metric_that_there_is() -> None:
    (asked,) = document("hpa/autoscaler.yaml", "HorizontalPodAutoscaler")["metrics"]
    metric = next(one for one in METRICS if one.name == asked["external"]["metric"]["name"])
    assert set(asked["external"]["metric"]["selector"]["matchLabels"]) <= set(metric.labels)


def test_nothing_is_smoothed_twice() -> None:
    scaled = document("keda/scaledobject.yaml", "ScaledObject")
    keda = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    for behavior in (keda, document("hpa/autoscaler.yaml", "HorizontalPodAutoscaler")["behavior"]):
        windows = [behavior[way]["stabilizationWindowSeconds"] for way in ("scaleUp", "scaleDown")]
        assert windows == [0, 0]
    assert scaled["cooldownPeriod"] < ZERO_AFTER_S


def test_the_guides_say_how_fast_it_is() -> None:
    guide = (ROOT / "docs/guides/autoscale.md").read_text("utf-8")
    assert (STEP_S, DOWN_AFTER_S, ZERO_AFTER_S) == (15, 120, 300)
    for said in ("in 15 seconds", "for two minutes", "for five minutes"):
        assert said in guide
