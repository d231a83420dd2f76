"""What a command costs: run it as a child and read its time, CPU and memory from the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """The cost of one run."""

    wall_s: float
    cpu_s: float
    """User and system time of the child and of all its descendants that were waited for."""
    peak_rss_mb: float
    """Of the largest single process among them. The kernel counts from the fork on, so that it is
    never less than what the caller itself holds: keep the caller small."""
    exit_code: int
    stdout: str


def run(command: Sequence[str], *, cwd: Path | None = None) -> Usage:
    """Run a command to its end. What it says on stderr is shown, what it prints is returned."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd) as child:
        stdout = child.stdout.read() if child.stdout else ""
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - started
        # The child is already waited for: Popen must not try it again.
        child.returncode = os.waitstatus_to_exitcode(status)
    return Usage(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_rss_mb=usage.ru_maxrss / 1024,
        exit_code=child.returncode,
        stdout=stdout,
    )


def cores() -> int:
    """How many processors we may use."""
    return len(os.sched_getaffinity(0))


def busy_s() -> float:
    """CPU time that the whole machine has spent so far, on anything."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def cpu_s_of(pid: int) -> float:
    """User and system time that a process has spent so far."""
    # The second field is a name in brackets that may contain anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb_of(pid: int) -> float:
    """The memory that a process has now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def figures_of(module: str, *options: str) -> Any:
    """What a benchmark module prints as JSON, run in a process of its own."""
    usage = run([sys.executable, "-m", f"benchmarks.{module}", *options])
    if usage.exit_code:
        raise SystemExit(f"benchmarks.{module} failed with exit code {usage.exit_code}")
    return json.loads(usage.stdout)
