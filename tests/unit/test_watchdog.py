"""A process that stands still is ended."""

from __future__ import annotations

import subprocess
import sys

from support.until import LIMIT_S

STANDS_STILL = """
import asyncio
from shoal.watchdog import watch_over

def stuck_here():
    while True:
        pass

async def main():
    watchdog = asyncio.create_task(watch_over(0.2))
    await asyncio.sleep(0)
    stuck_here()

asyncio.run(main())
"""


def test_a_stalled_process_ends_and_says_where_it_stood() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STANDS_STILL],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 1
    assert "stuck_here" in ended.stderr
