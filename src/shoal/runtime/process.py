"""The name and memory use of this process, and whether another one on this machine is alive."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def machine_name() -> str:
    """The host name and, in a container, its PID namespace, as PIDs only have a meaning in it."""
    return f"{socket.gethostname()}{_namespace()}"


def worker_name(pid: int) -> str:
    """The name of a worker process in the frontier."""
    return f"{machine_name()}:{pid}"


def rss_bytes() -> int:
    """The resident memory of this process. 0 if it cannot be known."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def is_dead_here(worker: str) -> bool:
    """Whether a worker was a process of this machine and is gone. False if that is unknown."""
    machine, _, pid = worker.rpartition(":")
    if machine != machine_name() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _is_zombie(pid)


def _is_zombie(pid: str) -> bool:
    """Whether a process has died without its parent noticing, which may last in containers."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[:1] == [b"Z"]


def _namespace() -> str:
    try:
        own, init = Path("/proc/self/ns/pid").stat().st_ino, 0xEFFFFFFC
    except OSError:
        return ""
    return "" if own == init else f"~{own:x}"
