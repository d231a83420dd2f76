"""Finds metrics in Prometheus expressions, and runs Prometheus's own tool to check them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from support.server_process import program

_METRIC = re.compile(r"\bshoal_[a-z_]+")
_OF_HISTOGRAMS = re.compile("_(bucket|sum|count)$")


def metrics_in(text: str) -> set[str]:
    """Shoal's metrics that a text names. Parts of a histogram count as the histogram."""
    return {_OF_HISTOGRAMS.sub("", name) for name in _METRIC.findall(text)}


def promtool(*words: str | Path, given: bytes = b"") -> str:
    """Run promtool and return its output. Fails if promtool reports an error."""
    done = subprocess.run(
        [program("promtool"), *words], input=given, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return (done.stdout + done.stderr).decode()
