"""What the Makefile and pyproject.toml offer, for tests of the documentation."""

from __future__ import annotations

import re
import tomllib

from support.markdown import ROOT


def targets() -> set[str]:
    """The targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def extras() -> set[str]:
    """The extras that can be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return set(project["optional-dependencies"])
