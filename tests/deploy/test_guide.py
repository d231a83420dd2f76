"""The commands of docs/guides/deploy.md that need no daemon and no cluster, run as they are."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.containers import BUILD_S, LIMITS, STORAGE, build_options, run
from support.docs import Reader
from support.markdown import ROOT, blocks, shell_commands
from support.operators import words_of
from support.postgres_servers import PostgresServer
from support.processes import Folder
from support.redis_servers import RedisServer
from support.server_process import missing_server, program
from support.sites import serving

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(BUILD_S)]

GUIDE = ROOT / "docs/guides/deploy.md"
COMMANDS = [command.text for command in shell_commands(GUIDE)]
OURS = "podman build -t shoal ."
"""It is run in a checkout, the others in the folder of a spider."""
SHIM = """#!/bin/sh
command=$1
shift
case $command in
build) exec buildah {build} "$@" ;;
run) exec {podman} run {run} "$@" ;;
esac
"""
"""A podman with images of its own, and without a registry, that reaches this machine's network."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serving(Shop(hosts=1, products=21)) as shop:
        yield shop


@pytest.fixture
def stores(redis_server: RedisServer, postgres_server: PostgresServer) -> dict[str, str]:
    postgres_server.execute("DROP DATABASE IF EXISTS guide", "CREATE DATABASE guide")
    results = postgres_server.url_of("guide")
    return {"SHOAL_FRONTIER": redis_server.url, "SHOAL_RESULTS": results}


@pytest.fixture
def reader(image: str, tmp_path: Path, shop: Shop, stores: dict[str, str]) -> Reader:
    """Somebody with our image, a spider, and the Containerfile of the guide."""
    podman = [program("podman"), *STORAGE, "--cgroup-manager=cgroupfs", "--runtime=runc"]
    more = ["--network=host", *LIMITS, "--env=SHOAL_ALLOW_PRIVATE", "--env=SHOAL_RATE"]
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/podman"
    shim.write_text(
        SHIM.format(
            build=shlex.join(map(str, build_options(tmp_path))),
            podman=shlex.join(map(str, podman)),
            run=shlex.join(more),
        )
    )
    shim.chmod(0o755)
    (project := tmp_path / "project").mkdir()
    path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    reader = Reader(project, f"http://127.0.0.1:{shop.ports[0]}", env={**stores, **path})
    written = next(block.text for block in blocks(GUIDE) if block.language == "dockerfile")
    reader.write("Containerfile", written)
    reader.write("shoal.toml", "")
    return reader


def test_podman(reader: Reader, stores: dict[str, str], shop: Shop, tmp_path: Path) -> None:
    given = [text for text in COMMANDS if text.startswith("podman ")]
    assert OURS in given
    for text in given:
        folder = ROOT if text == OURS else reader.folder
        ended = reader.run("bash", "-c", f"cd {folder} && {text}")
        assert ended.code in (0, 3), f"{text}: {ended}"
    items = Folder(tmp_path, stores).export("shop")
    assert {item["sku"] for item in items} == shop.expected_items().keys()


def test_kustomize() -> None:
    (text,) = (text for text in COMMANDS if text.startswith("kubectl kustomize "))
    _, *words = words_of(text)
    kubectl = shutil.which("kubectl") or missing_server("kubectl", "no package of Debian will do")
    ended = run("env", "KUBECONFIG=/dev/null", kubectl, *words[:-1], ROOT / words[-1])
    assert ended.code == 0, ended
    assert "kind: ScaledObject" in ended.out
