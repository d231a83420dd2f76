"""Images and containers of `make test-deploy`: in a storage of their own, as root, no daemon."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from support.markdown import ROOT
from support.processes import Ended
from support.until import LIMIT_S

DEPLOY = ROOT / ".deploy"
"""The folder that `scripts/setup deploy` fills."""
COMPOSE = ROOT / "deploy/compose.yaml"
STORAGE = ("--root", DEPLOY / "storage", "--runroot", DEPLOY / "storage-run")
LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")
"""Without these, podman asks for more than a machine may allow."""
BUILT_WITH = {"BASE": "localhost/base", "RUNTIME": "localhost/bare"}
"""Build arguments: the base images that `scripts/setup deploy` makes, Debian with Python, and the
same without a shell."""
BUILD_S = 1800.0
NO_INDEX = "[global]\nno-index = true\nfind-links = /wheels\n"
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def run(*words: str | Path, limit_s: float = LIMIT_S) -> Ended:
    """Run a program to its end."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def podman(*words: str | Path, limit_s: float = LIMIT_S) -> str:
    """Run podman on the images and containers of the tests, and return its output. It must
    succeed."""
    runtime = ("--cgroup-manager", "cgroupfs", "--runtime", "runc")
    ended = run("podman", *STORAGE, *runtime, *words, limit_s=limit_s)
    assert ended.code == 0, f"podman {' '.join(map(str, words))}: {ended.err}"
    return ended.out


def import_systems() -> None:
    """Import the base images, unless they are there."""
    for name in ("base", "bare"):
        if run("podman", *STORAGE, "image", "exists", f"localhost/{name}").code != 0:
            podman("import", DEPLOY / f"{name}.tar", f"localhost/{name}", limit_s=BUILD_S)


def build_options(workspace: Path) -> list[str | Path]:
    """The options of buildah: install packages from the local folder, and reuse layers."""
    (pip := workspace / "pip.conf").write_text(NO_INDEX)
    return [
        *(*STORAGE, "build", "--isolation=chroot", "--pull=never", "--layers"),
        *(f"--volume={DEPLOY}/wheels:/wheels:ro", f"--volume={pip}:/etc/pip.conf:ro"),
        *(f"--build-arg={name}={value}" for name, value in BUILT_WITH.items()),
    ]


def build(folder: Path, image: str, workspace: Path) -> str:
    """Build an image from the Containerfile of a folder."""
    options = build_options(workspace)
    ended = run("buildah", *options, "--tag", image, folder, limit_s=BUILD_S)
    assert ended.code == 0, ended.out[-3000:] + ended.err[-3000:]
    return image


def inspect(image: str) -> Any:
    """What `podman image inspect` says of an image."""
    (found,) = json.loads(podman("image", "inspect", image))
    return found


def compose(**variables: str) -> dict[str, Any]:
    """The contents of deploy/compose.yaml, with its variables filled in."""
    text = COMPOSE.read_text("utf-8")
    read: dict[str, Any] = yaml.safe_load(
        _VARIABLE.sub(lambda found: variables.get(found[1], found[2]), text)
    )
    return read


def as_in_compose(service: str, secrets: Path) -> list[str]:
    """Options that give a container the rights, limits, files and variables of a service of
    compose.yaml."""
    said = compose()["services"][service]
    options = [f"--memory={said['mem_limit']}"]
    if said["read_only"]:
        options += ["--read-only", "--read-only-tmpfs=false"]
    options += [f"--tmpfs={folder}" for folder in said["tmpfs"]]
    options += [f"--cap-drop={name}" for name in said["cap_drop"]]
    options += [f"--security-opt={rule.removesuffix(':true')}" for rule in said["security_opt"]]
    options += [f"--env={name}={value}" for name, value in said["environment"].items()]
    options += [f"--volume={secrets / name}:/run/secrets/{name}:ro" for name in said["secrets"]]
    return options


class Container:
    """A container that was started."""

    def __init__(self, name: str) -> None:
        self._name = name

    def execute(self, *words: str) -> Ended:
        """Run a program in the container, to its end."""
        return run("podman", *STORAGE, "exec", self._name, *words)

    def kill(self) -> None:
        """Send SIGKILL."""
        podman("kill", "--signal", "KILL", self._name)

    def stop(self) -> Ended:
        """Send SIGTERM, as an orchestrator does, and SIGKILL if it has not ended after 30 s."""
        podman("stop", "--time", "30", self._name)
        return self.wait()

    def wait(self) -> Ended:
        """Wait for the container's end."""
        code = int(podman("wait", self._name))
        return Ended(code, *self._said())

    def has_ended(self) -> bool:
        """Whether the container has ended."""
        return podman("inspect", "--format", "{{.State.Running}}", self._name).strip() == "false"

    @property
    def log(self) -> str:
        """What the container has written to stdout and stderr so far."""
        return "".join(self._said())

    def _said(self) -> tuple[str, str]:
        ended = run("podman", *STORAGE, "logs", self._name)
        return ended.out, ended.err


def output_of(image: str, program: str, *words: str) -> str:
    """The output of a program in an image."""
    return podman("run", "--rm", *LIMITS, f"--entrypoint={program}", image, *words)


@contextmanager
def running(
    image: str,
    *command: str,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[Container]:
    """A container on the network of this machine, removed at the end."""
    variables = [f"--env={name}={value}" for name, value in (env or {}).items()]
    words = ("run", "--detach", "--network=host", *LIMITS, *options, *variables, image, *command)
    name = podman(*words).strip()
    try:
        yield Container(name)
    finally:
        podman("rm", "--force", "--time", "0", name)
