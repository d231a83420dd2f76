"""Moves the clock of commands that tests run; imported at start if this folder is in PYTHONPATH.

The clock of the process, and of its frontier, is ahead by the number of seconds in a file. So hours
can pass between two commands, or in the middle of one, without a setting for that in Shoal.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_real = time.time
_file = Path(os.environ["TEST_CLOCK_FILE"])
_read: tuple[int, float] = (0, 0.0)


def _later() -> float:
    global _read
    changed = _file.stat().st_mtime_ns
    if changed != _read[0]:
        _read = changed, float(_file.read_text() or 0)
    return _real() + _read[1]


time.time = _later

if os.environ.get("SHOAL_FRONTIER", "").startswith("redis"):
    from shoal.frontier.redis import RedisFrontier

    RedisFrontier.__init__.__defaults__ = (_later, None)
