"""scrapy-redis, to compare with: in a folder of its own that is put on the path of its processes.

Its last release, 0.9.1, runs a plain spider on the Scrapy that we run on. Only its own spiders, and
its statistics, do not: neither is used here. So all contestants share one Scrapy, one Python and
one client of Redis.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.site import OUT

REQUIREMENT = "scrapy-redis==0.9.1"


def put_on_path(out: Path = OUT) -> None:
    """Install it, if it is not there yet, where the processes that we start can find it."""
    folder = out / REQUIREMENT.replace("==", "-")
    if not (folder / "scrapy_redis").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check"]
        subprocess.run([*command, "--target", str(folder), REQUIREMENT], check=True)
    os.environ["PYTHONPATH"] = str(folder)
