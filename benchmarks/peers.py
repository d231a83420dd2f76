"""Installs the crawlers that Shoal is compared with, in an environment under benchmarks/out.

Libraries that Shoal uses, too (Scrapy, the client of Redis, uvloop), get the same version there, so
that no difference is due to them.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

from benchmarks.site import OUT

PEERS = ("scrapy-redis==0.9.1", "crawlee[parsel]==1.11.0")
SHARED = ("scrapy", "redis", "hiredis", "uvloop")


def python() -> str:
    """The peers' Python. Installs them the first time, and when versions have changed."""
    folder = OUT / "peers"
    stamp = folder / "requirements.txt"
    wanted = "\n".join([*PEERS, *(f"{name}=={version(name)}" for name in SHARED)])
    binary = folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing the peers (half a minute)", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        _install(binary, wanted.split())
        stamp.write_text(wanted)
    return str(binary)


def _install(binary: Path, requirements: list[str]) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([binary, "-m", "pip", "install", *quiet, *requirements], check=True)
