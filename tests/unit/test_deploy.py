"""What deploy/ says agrees with the code, and keeps to the rules that the guide promises."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.config import FILE_SUFFIX, SETTINGS, variable_of
from shoal.core import networks
from shoal.version import __version__
from shoal.web.listening import DEFAULT_LISTEN
from shoal.worker.assignment import DRAIN_S
from support.cli import options_of
from support.markdown import ROOT

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PORT = int(DEFAULT_LISTEN.rpartition(":")[2])
USER = 10001
DRAINS_WITHIN_S = 30


def resources(folder: str = "") -> Iterator[dict[str, Any]]:
    """The resources of Kubernetes, as they are written."""
    for file in sorted((KUBERNETES / folder).rglob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            if isinstance(document, dict) and "metadata" in document:
                yield document


def test_the_image_tells_the_version() -> None:
    assert f"\nARG VERSION={__version__}\n" in (ROOT / "Containerfile").read_text("utf-8")


def pods() -> list[dict[str, Any]]:
    """The pods that we start, without those that only change another."""
    templates = (found["spec"].get("template") for found in resources() if "spec" in found)
    return [found["spec"] for found in templates if found and "containers" in found["spec"]]


def policy(name: str) -> dict[str, Any]:
    (found,) = (
        it for it in resources("base") if it["metadata"]["name"] == name and "Net" in it["kind"]
    )
    spec: dict[str, Any] = found["spec"]
    return spec


def deployed_files() -> list[Path]:
    text = {".yaml", ".yml", ".service", ""}
    files = [file for file in DEPLOY.rglob("*") if file.is_file() and file.suffix in text]
    return [ROOT / "Containerfile", *(file for file in files if "secrets" not in file.parts)]


def test_every_variable_exists() -> None:
    known = {variable_of(name) for name in SETTINGS}
    known |= {variable_of(name) + FILE_SUFFIX for name, it in SETTINGS.items() if it.is_in_files}
    known |= {"SHOAL_ALIVE_FILE", "SHOAL_TOKEN_FILE", "SHOAL_IMAGE"}
    named = {
        variable
        for file in deployed_files()
        for variable in re.findall(r"\bSHOAL_[A-Z_]+", file.read_text("utf-8"))
    }
    assert "SHOAL_RESULTS_FILE" in named
    assert named <= known


def commands() -> list[list[str]]:
    """What containers and units are told to run."""
    made = [service["command"] for name, service in SERVICES.items() if name in ("serve", "worker")]
    made += [container["args"] for pod in pods() for container in pod["containers"]]
    made += [
        line.split()[1:]
        for unit in DEPLOY.glob("systemd/*")
        for line in re.findall("^ExecStart=(.*)", unit.read_text("utf-8"), re.MULTILINE)
    ]
    return made


def test_every_command_and_option_exists() -> None:
    assert {command for command, *_ in commands()} == {"serve", "worker", "crawl"}
    for command, *words in commands():
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options_of(command).keys()


def test_everybody_means_the_same_port() -> None:
    assert SERVICES["serve"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    text = "\n".join(file.read_text("utf-8") for file in deployed_files())
    named = re.findall(r"(?:0\.0\.0\.0:|[sS]ervice:|serve:|svc:|[pP]ort: )(\d{4,5})\b", text)
    assert set(map(int, named)) - {5432, 6379} == {PORT}


def test_pods_are_restricted() -> None:
    assert len(pods()) == 3
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        user = pod["securityContext"]
        assert user["runAsNonRoot"] is True
        assert {user["runAsUser"], user["runAsGroup"], user["fsGroup"]} == {USER}
        assert user["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["terminationGracePeriodSeconds"] > DRAINS_WITHIN_S
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"].keys() == {"memory"}
    (namespace,) = (it for it in resources("base") if it["kind"] == "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert f"USER {USER}:{USER}\n" in (ROOT / "Containerfile").read_text("utf-8")


def test_the_network_leads_to_the_world_and_to_stores_alone() -> None:
    world, names, *stores = policy("shoal-egress")["egress"]
    v4, v6 = (it["ipBlock"] for it in world["to"])
    assert v4 == {"cidr": "0.0.0.0/0", "except": [str(it) for it in networks._NOT_PUBLIC_4]}
    assert v6 == {
        "cidr": str(networks._GLOBAL_UNICAST),
        "except": [str(it) for it in networks._NOT_PUBLIC_6],
    }
    assert {port["port"] for port in names["ports"]} == {53}
    assert [port["port"] for store in stores for port in store["ports"]] == [6379, 5432]
    assert all("ipBlock" not in it for store in stores for it in store["to"])
    assert "ingress" not in policy("shoal-no-ingress")
    assert policy("shoal-serve")["podSelector"] == {
        "matchLabels": {"app.kubernetes.io/name": "shoal-serve"}
    }


def test_a_store_that_is_away_at_the_start_stops_nothing_for_good() -> None:
    """Exit code 2 means that, too."""
    for unit in DEPLOY.glob("systemd/*"):
        text = unit.read_text("utf-8")
        assert "\nRestart=on-failure\n" in text
        assert "RestartPreventExitStatus" not in text
    (job,) = (found for found in resources("example") if found["kind"] == "Job")
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["values"] == [3]


def test_services_of_compose_are_hardened() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        ports = service.get("ports", [])
        assert all(port.startswith("127.0.0.1:") for port in ports), name
    for name in ("redis", "postgres", "s3", "prometheus"):
        assert SERVICES[name]["networks"] == ["stores"]
    assert COMPOSE["networks"]["stores"] == {"internal": True}
    words = SERVICES["redis"]["command"]
    settings = dict(zip(words[1::2], words[2::2], strict=True))
    assert settings["--appendonly"] == "yes"
    assert settings["--maxmemory-policy"] == "noeviction"


def test_there_is_time_to_drain() -> None:
    assert DRAINS_WITHIN_S > DRAIN_S * 3  # Requests in flight, commits, and what is given back.
    for name in ("serve", "worker"):
        assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > DRAINS_WITHIN_S
    for unit in DEPLOY.glob("systemd/*"):
        (limit,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit.read_text("utf-8"), re.MULTILINE)
        assert int(limit) > DRAINS_WITHIN_S


def test_secrets_are_made_once_and_are_all_that_is_mounted(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"

    def make() -> dict[str, str]:
        subprocess.run([DEPLOY / "make-secrets", folder], check=True)
        return {file.name: file.read_text("utf-8") for file in folder.iterdir()}

    made = make()
    assert make() == made
    assert folder.stat().st_mode & 0o777 == 0o700
    mounted = {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}
    env_files = {
        Path(file).name for service in SERVICES.values() for file in service.get("env_file", [])
    }
    assert mounted | env_files | {"redis-password"} == made.keys()
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == COMPOSE["secrets"].keys()
    assert made["redis-password"] in made["frontier"]
    assert made["redis-password"] in made["redis-acl"]
    assert made["postgres-password"] in made["results"]
    assert f"read {made['read-token']}\n" in made["tokens"]


def test_the_rules_for_the_operator_are_what_their_script_makes() -> None:
    script = DEPLOY / "prometheus/operator_rules.py"
    made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    file = KUBERNETES / "components/monitoring/rules.yaml"
    assert file.read_text("utf-8") == made.stdout
    rules = yaml.safe_load((DEPLOY / "prometheus/shoal.rules.yml").read_text("utf-8"))
    assert yaml.safe_load(made.stdout)["spec"] == rules


@pytest.mark.parametrize("component", ["keda", "hpa"])
def test_an_autoscaler_asks_for_one_worker_for_each_that_is_wanted(component: str) -> None:
    found = {it["kind"]: it["spec"] for it in resources(f"components/{component}")}
    if component == "keda":
        (trigger,) = found["ScaledObject"]["triggers"]
        asked = trigger["metadata"]
        assert asked["url"].endswith("/api/v1/scale/shop")
        assert (asked["valueLocation"], asked["targetValue"]) == ("workers", "1")
        assert found["ScaledObject"]["minReplicaCount"] == 0
    else:
        (metric,) = found["HorizontalPodAutoscaler"]["metrics"]
        assert metric["external"]["metric"]["name"] == "shoal_workers_wanted"
        assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "1"}
