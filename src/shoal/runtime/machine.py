"""Cores, memory and CPU time of the machine or the container. 0 where they cannot be known."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
_IDLE, _IOWAIT, _STEAL, _GUEST = 3, 4, 7, 8
"""Positions in the first line of /proc/stat. The values from guest on are also part of others."""


class CpuTime(NamedTuple):
    """The CPU time of all processes, counted from an unspecified moment."""

    busy_s: float
    stolen_s: float
    """Time in which this virtual machine was ready to run, but its host ran others."""


def cores(cgroup: Path = CGROUP) -> float:
    """How many cores this process may use. A container may have a fraction of a core."""
    own = float(len(os.sched_getaffinity(0)))
    return min(own, _quota(cgroup) or own)


def memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    """The memory of the machine, or the part of it that a container may use."""
    lines = _text(proc / "meminfo").splitlines()
    told = next((int(at.split()[1]) * 1024 for at in lines if at.startswith("MemTotal:")), 0)
    # The unit for systemd hides that file, as all of /proc but processes.
    whole = told or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(whole, _number(cgroup / "memory.max") or whole)


def cpu_time(proc: Path = PROC, cgroup: Path = CGROUP) -> CpuTime:
    """The CPU time spent by the machine; in a container with a limit, by the container."""
    ticks = [int(number) for number in _text(proc / "stat").partition("\n")[0].split()[1:]]
    if len(ticks) <= _STEAL:
        return CpuTime(0.0, 0.0)
    per_s = os.sysconf("SC_CLK_TCK")
    idle = ticks[_IDLE] + ticks[_IOWAIT] + ticks[_STEAL]
    busy_s = (sum(ticks[:_GUEST]) - idle) / per_s
    if _quota(cgroup):
        used = dict(line.split() for line in _text(cgroup / "cpu.stat").splitlines())
        busy_s = int(used.get("usage_usec", 0)) / 1e6
    return CpuTime(busy_s, ticks[_STEAL] / per_s)


def queued_s(proc: Path = PROC) -> float:
    """How long this thread has been ready to run while others had the cores."""
    fields = _text(proc / "thread-self" / "schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def _quota(cgroup: Path) -> float:
    """The number of cores that a container may use. 0: no limit."""
    fields = _text(cgroup / "cpu.max").split()
    return int(fields[0]) / int(fields[1]) if len(fields) == 2 and fields[0].isdigit() else 0.0


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
