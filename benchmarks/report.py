"""Where figures go: tables to the console, raw ones to a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from benchmarks.site import OUT


def wide_console() -> Console:
    """A console on which the tables fit, also where it is a file."""
    return Console(width=None if sys.stdout.isatty() else 120)


def keep(name: str, figures: Mapping[str, Any]) -> Path:
    """Write figures to a new file. Returns where it is."""
    target = OUT / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    target.write_bytes(msgspec.json.encode(figures))
    return target
