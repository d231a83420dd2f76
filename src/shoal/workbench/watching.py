"""Runs a command again whenever the files of a spider change."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from shoal.fleet.target import load

POLL_S = 0.3
MAX_FILES = 1_000
_FLAG = "--watch"


def again_when_changed(target: str, say: Callable[[str], None]) -> None:
    """Run this command without its `--watch`, now and after each change, until Ctrl-C. Each run is
    a process of its own, so that everything is imported again."""
    folder = _folder_of(target)
    words = [word for word in sys.argv[1:] if word != _FLAG]
    command = [sys.executable, "-m", "shoal", *words, "--cache"]

    def act() -> None:
        subprocess.run(command, check=False)  # noqa: S603 - our own command
        say(f"waiting for changes in {folder} (Ctrl-C to exit)")

    watch(folder, act)


def watch(
    folder: Path, act: Callable[[], object], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Act now, and again after each change of a Python file in a folder. Ends with an exception."""
    while True:
        seen = _state(folder)
        act()
        while _state(folder) == seen:
            sleep(POLL_S)


def _folder_of(target: str) -> Path:
    place, _, name = target.rpartition(":")
    file = target if target.endswith(".py") else place if name.isidentifier() else ""
    if file.endswith(".py"):
        return Path(file).parent
    module = sys.modules[load([target]).__module__]
    return Path(module.__file__ or "").parent


def _state(folder: Path) -> dict[Path, float]:
    """The time of each file's last change. Editors remove a file for a moment while writing it."""
    found = {}
    for file in islice(folder.glob("*.py"), MAX_FILES):
        try:
            found[file] = file.stat().st_mtime
        except OSError:
            continue
    return found
