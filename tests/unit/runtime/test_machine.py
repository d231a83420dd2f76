"""What the machine has and does, as its files say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.runtime import machine
from shoal.runtime.machine import CpuTime

TICKS = os.sysconf("SC_CLK_TCK")


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".", 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    stat = [100, 20, 30, 9000, 50, 1, 2, 40, 100, 20]
    return write(
        tmp_path / "proc",
        stat="cpu  " + " ".join(f"{number * TICKS}" for number in stat) + "\ncpu0 1 2\n",
        meminfo="MemTotal:        2000 kB\nMemFree: 1 kB\n",
    )


def test_a_machine(proc: Path, tmp_path: Path) -> None:
    assert machine.cpu_time(proc, tmp_path) == CpuTime(100 + 20 + 30 + 1 + 2, 40)
    assert machine.memory_bytes(proc, tmp_path) == 2_048_000
    assert machine.cores(tmp_path) == len(os.sched_getaffinity(0))


def test_a_container_has_what_it_may_use(proc: Path, tmp_path: Path) -> None:
    own = write(tmp_path / "cgroup", cpu_max="50000 100000\n", memory_max="1000000\n")
    write(own, cpu_stat="usage_usec 2500000\nuser_usec 1\n")
    assert machine.cores(own) == 0.5
    assert machine.memory_bytes(proc, own) == 1_000_000
    assert machine.cpu_time(proc, own) == CpuTime(2.5, 40)


def test_a_container_without_limits_is_the_machine(proc: Path, tmp_path: Path) -> None:
    own = write(tmp_path / "cgroup", cpu_max="max 100000\n", memory_max="max\n")
    assert machine.cores(own) == len(os.sched_getaffinity(0))
    assert machine.memory_bytes(proc, own) == 2_048_000
    assert machine.cpu_time(proc, own).busy_s == 153


def test_where_files_are_hidden(tmp_path: Path) -> None:
    assert machine.cpu_time(tmp_path, tmp_path) == CpuTime(0.0, 0.0)
    assert machine.memory_bytes(tmp_path, tmp_path) > 10**8
    assert machine.queued_s(tmp_path) == 0.0


def test_here() -> None:
    assert machine.cpu_time().busy_s > 0
    assert machine.memory_bytes() > 10**8
    assert machine.queued_s() >= 0
