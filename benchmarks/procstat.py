"""Measures time, CPU and memory of commands and processes, as the kernel reports them."""

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
    """The cost of one command."""

    wall_s: float
    cpu_s: float
    """User and system time of the child and of all its descendants that were waited for."""
    peak_rss_mb: float
    """The peak of the largest process among them. The kernel counts from the fork on, so this is
    never less than what the calling process takes: keep that small."""
    exit_code: int
    stdout: str


def run(command: Sequence[str], *, cwd: Path | None = None) -> Usage:
    """Run a command to its end. Its stderr is shown, its stdout returned."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd) as child:
        stdout = child.stdout.read() if child.stdout else ""
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - started
        # wait4 has reaped the child: Popen must not wait for it again.
        child.returncode = os.waitstatus_to_exitcode(status)
    return Usage(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_rss_mb=usage.ru_maxrss / 1024,
        exit_code=child.returncode,
        stdout=stdout,
    )


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def busy_s() -> float:
    """CPU time that all processes of this machine have used since it started."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def cpu_s_of(pid: int) -> float:
    """User and system time that a process has used so far."""
    # The second field is a name in brackets that may contain anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb_of(pid: int) -> float:
    """The memory that a process has now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def figures_of(module: str, *options: str) -> Any:
    """Run a benchmark module in a process of its own, and return the JSON that it prints."""
    usage = run([sys.executable, "-m", f"benchmarks.{module}", *options])
    if usage.exit_code:
        raise SystemExit(f"benchmarks.{module} failed with exit code {usage.exit_code}")
    return json.loads(usage.stdout)
