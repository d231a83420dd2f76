"""The targets of the Makefile and the extras of pyproject.toml, for tests of the documentation."""

from __future__ import annotations

import re
import subprocess
import tomllib

from support.markdown import ROOT
from support.until import LIMIT_S


def targets() -> set[str]:
    """The targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def steps_of(target: str) -> str:
    """All commands of a target and its prerequisites, as if nothing had been made yet."""
    command = ["make", "--dry-run", "--always-make", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def extras() -> set[str]:
    """The extras that can be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return set(project["optional-dependencies"])
