"""For commands that tests run: all that Python imports first, when this folder is in PYTHONPATH.

The clock of this process, and that of its frontier, is ahead by as many seconds as a file says. So
hours pass between two commands, or in the middle of one, without a setting for it.
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
