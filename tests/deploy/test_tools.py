"""What the tools of others say of deploy/: schemas, linters, and what renders manifests."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.containers import COMPOSE, DEPLOY, compose, run
from support.markdown import ROOT
from support.processes import SHOAL, Ended
from support.redis_servers import RedisServer
from support.server_process import missing_server, program

pytestmark = pytest.mark.deploy

KUBERNETES = ROOT / "deploy/kubernetes"
COMPONENTS = sorted(path.name for path in (KUBERNETES / "components").iterdir())
VERSIONS = ("1.27", "1.37")
"""Of Kubernetes: an old one that is still about, and the newest that the tool knows."""
OF_OTHERS = {
    "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
    "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
}
"""Where Node.js finds the schemas of resources that are not Kubernetes' own."""
VALIDATE = """
import { text } from "node:stream/consumers";
const [path, document] = JSON.parse(await text(process.stdin));
const Model = (await import(`${path}/${document.kind}`))[document.kind];
new Model(document).validate();
"""
MOST_EXPOSED = 2.0
"""Of ten; below it, systemd is content."""


def tool(name: str) -> Path:
    """A tool that scripts/setup deploy has installed."""
    return DEPLOY / "bin" / name


def kustomize(folder: Path) -> str:
    """What a folder renders to. Asks no cluster."""
    if found := shutil.which("kustomize"):
        command = [found, "build"]
    elif found := shutil.which("kubectl"):
        command = [found, "kustomize"]
    else:
        missing_server("kustomize or kubectl", "no package of Debian has one that is new enough")
    ended = run("env", "KUBECONFIG=/dev/null", *command, folder)
    assert ended.code == 0, ended.err
    return ended.out


def assert_passes(ended: Ended) -> None:
    assert ended.code == 0, ended.out + ended.err


def test_hadolint() -> None:
    assert_passes(run(tool("hadolint"), ROOT / "Containerfile"))


def test_the_schema_of_compose() -> None:
    assert_passes(run(tool("check-jsonschema"), "--builtin-schema=vendor.compose-spec", COMPOSE))


@cache
def rendered(components: tuple[str, ...]) -> str:
    """The base with some components, as an overlay of somebody's has them."""
    if not components:
        return kustomize(KUBERNETES / "base")
    overlay = KUBERNETES / "overlay-of-a-test"
    overlay.mkdir()
    try:
        said = {
            "namespace": "shoal",
            "resources": ["../base"],
            "components": [f"../components/{name}" for name in components],
        }
        (overlay / "kustomization.yaml").write_text(yaml.safe_dump(said))
        return kustomize(overlay)
    finally:
        shutil.rmtree(overlay)


CHOICES = [(), *((name,) for name in COMPONENTS), ("keda", "spot", "monitoring", "git-sync")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("components", CHOICES, ids=lambda them: "+".join(them) or "base")
def test_kubernetes_takes_what_is_rendered(
    components: tuple[str, ...], version: str, tmp_path: Path
) -> None:
    (file := tmp_path / "all.yaml").write_text(rendered(components))
    assert_passes(
        run(tool("kubernetes-validate"), "--strict", "--no-warn", "-k", version, file),
    )


def test_kubernetes_takes_the_example(tmp_path: Path) -> None:
    (file := tmp_path / "all.yaml").write_text(kustomize(KUBERNETES / "example"))
    assert_passes(run(tool("kubernetes-validate"), "--strict", "--no-warn", file))
    found = documents(file.read_text())
    images = {
        container["image"]
        for document in found
        for container in containers_of(document)
        if container["name"] != "git-sync"
    }
    assert images == {"registry.example/shop:1"}
    named = {
        source["configMapRef"]["name"]
        for document in found
        for container in containers_of(document)
        for source in container["envFrom"]
    }
    assert named <= {it["metadata"]["name"] for it in found if it["kind"] == "ConfigMap"}


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def containers_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    pod = document.get("spec", {}).get("template", {}).get("spec", {})
    return [*pod.get("containers", []), *pod.get("initContainers", [])]


def test_everything_rendered_is_in_one_namespace() -> None:
    found = documents(rendered(CHOICES[-1]))
    assert {"ScaledObject", "ServiceMonitor", "PrometheusRule", "NetworkPolicy"} <= {
        it["kind"] for it in found
    }
    assert {it["metadata"].get("namespace") for it in found if it["kind"] != "Namespace"} == {
        "shoal"
    }
    (workers,) = (
        it
        for it in found
        if it["metadata"]["name"] == "shoal-worker" and it["kind"] == "Deployment"
    )
    assert "replicas" not in workers["spec"]
    (wanted,) = workers["spec"]["template"]["spec"]["initContainers"]
    assert wanted["securityContext"]["readOnlyRootFilesystem"] is True


def validate(document: dict[str, Any]) -> Ended:
    """Have a resource of others checked by its schema."""
    node = program("node")
    if not (DEPLOY / "node_modules").exists():
        missing_server("@kubernetes-models/keda", "run scripts/setup deploy where there is npm")
    done = subprocess.run(
        [node, "--input-type=module", "-e", VALIDATE],
        input=json.dumps([OF_OTHERS[document["apiVersion"]], document]),
        cwd=DEPLOY,
        capture_output=True,
        text=True,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_the_schemas_of_keda_and_of_the_operator() -> None:
    found = [it for it in documents(rendered(CHOICES[-1])) if it["apiVersion"] in OF_OTHERS]
    assert len(found) == 4
    for document in found:
        assert_passes(validate(document))
    wrong = next(it for it in found if it["kind"] == "ScaledObject")
    wrong["spec"]["triggers"][0]["metadata"]["targetValue"] = 1
    assert validate(wrong).code != 0


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A system with our units in it, and a program where they expect it."""
    folder = tmp_path / "etc/systemd/system"
    folder.mkdir(parents=True)
    for unit in (ROOT / "deploy/systemd").iterdir():
        shutil.copy(unit, folder)
    (tmp_path / "opt/shoal/bin").mkdir(parents=True)
    shutil.copy("/bin/true", tmp_path / "opt/shoal/bin/shoal")
    (tmp_path / "usr/lib").mkdir(parents=True)
    shutil.copytree("/usr/lib/systemd/system", tmp_path / "usr/lib/systemd/system", symlinks=True)
    return tmp_path


@pytest.mark.parametrize("unit", ["shoal-serve.service", "shoal-worker@shop.service"])
def test_systemd_takes_the_units(unit: str, units: Path) -> None:
    analyze = program("systemd-analyze")
    checked = run(analyze, "verify", f"--root={units}", "--man=no", unit)
    assert_passes(checked)
    assert "shoal" not in checked.err, checked.err
    exposed = run(analyze, "security", f"--root={units}", "--offline=true", "--no-pager", unit)
    figure = exposed.out.strip().splitlines()[-1].split(":")[1].split()[0]
    assert float(figure) < MOST_EXPOSED


def test_prometheus_takes_its_configuration() -> None:
    file = ROOT / "deploy/prometheus/compose.yml"
    assert_passes(run(program("promtool"), "check", "config", "--syntax-only", file))


def redis_of_compose(secrets: Path) -> Sequence[str]:
    """How compose.yaml starts Redis: options, with secrets that are elsewhere here."""
    _, *options = compose()["services"]["redis"]["command"]
    return [word.replace("/run/secrets", str(secrets)) for word in options]


def test_redis_takes_its_options_and_asks_for_the_password(secrets: Path, tmp_path: Path) -> None:
    password = (secrets / "redis-password").read_text()
    options = redis_of_compose(secrets)
    with RedisServer(tmp_path / "redis", *options, password=password) as server:
        assert server.cli("CONFIG", "GET", "aclfile").endswith("/redis-acl")
        address = (secrets / "frontier").read_text().strip()
        here = f"127.0.0.1:{server.port}"
        shoal = (SHOAL, "status", "--json", "--frontier")
        assert_passes(run(*shoal, address.replace("redis:6379", here)))
        assert run(*shoal, f"redis://{here}").code == 2
