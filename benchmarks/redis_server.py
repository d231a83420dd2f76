"""Runs a private Redis to measure, on a free port, in a temporary folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import redis

from benchmarks import procstat
from benchmarks.site import free_port

Figures = dict[str, float]
"""URLs per second, and microseconds that the server spent in scripts, per URL."""


class Load(msgspec.Struct):
    """The work that the server has done."""

    cpu_s: float
    reads: int
    """Reads from sockets: one per round trip, and a few more for long requests."""
    writes: int
    scripts: int
    script_s: float
    commands: int
    """Commands of clients, and those that scripts called."""

    def __sub__(self, before: Load) -> Load:
        now, then = msgspec.structs.astuple(self), msgspec.structs.astuple(before)
        return Load(*(a - b for a, b in zip(now, then, strict=True)))


class RedisServer:
    """A running server, and its statistics."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.address = f"redis://127.0.0.1:{port}/0"
        self._pid = pid
        self._client = redis.Redis(port=port)

    def info(self, section: str) -> dict[str, Any]:
        """One section of INFO."""
        found: dict[str, Any] = self._client.info(section)
        return found

    def empty(self) -> None:
        """Delete everything."""
        self._client.flushall()

    def used_bytes(self) -> int:
        """The memory of all data, without the buffers of clients."""
        memory = self.info("memory")
        return int(memory["used_memory"]) - int(memory["mem_clients_normal"])

    def bytes_of(self, key_pattern: str) -> int:
        """The memory of the keys that match a pattern, by MEMORY USAGE."""
        keys = self._client.scan_iter(key_pattern, count=10_000)
        return sum(self._client.memory_usage(key, samples=0) or 0 for key in keys)

    def freed_without(self, key_pattern: str) -> int:
        """Delete the keys that match a pattern, and return the memory that this freed.

        This is exact: MEMORY USAGE counts the bytes that were requested, not those that the
        allocator gave, for instance 48 instead of 56 for each of many small keys.
        """
        before = self.used_bytes()
        for key in list(self._client.scan_iter(key_pattern, count=10_000)):
            self._client.delete(key)
        return before - self.used_bytes()

    def load(self) -> Load:
        """The work that the server has done since it started."""
        stats, scripts = self.info("stats"), self._scripts()
        return Load(
            cpu_s=procstat.cpu_s_of(self._pid),
            reads=stats["total_reads_processed"],
            writes=stats["total_writes_processed"],
            scripts=scripts.get("calls", 0),
            script_s=self.script_s(),
            commands=stats["total_commands_processed"],
        )

    def script_s(self) -> float:
        """The time that the server has spent in scripts so far."""
        return int(self._scripts().get("usec", 0)) / 1e6

    def _scripts(self) -> dict[str, Any]:
        calls: dict[str, Any] = self.info("commandstats").get("cmdstat_evalsha", {})
        return calls


@contextmanager
def timed(server: RedisServer, urls: int) -> Iterator[Figures]:
    """Measure what this context does to `urls` URLs. The figures are filled in at its end."""
    figures: Figures = {}
    in_scripts, started = server.script_s(), time.perf_counter()
    yield figures
    figures["urls_per_s"] = urls / (time.perf_counter() - started)
    figures["server_us"] = (server.script_s() - in_scripts) / urls * 1e6


@contextmanager
def redis_server(*, durable: bool = False) -> Iterator[RedisServer]:
    """Run a new server, and remove it at the end. A durable one has an append-only file, as a
    fleet's should, but never rewrites it: that would slow down some runs and not others."""
    binary = shutil.which("redis-server")
    if not binary:
        raise SystemExit("benchmarks: redis-server is missing; scripts/servers installs it")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="shoal-redis-") as folder:
        command = [binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        command += ["--save", "", "--appendonly", "yes" if durable else "no"]
        command += ["--auto-aof-rewrite-percentage", "0"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
            try:
                _wait_until_open(child, port)
                yield RedisServer(port, child.pid)
            finally:
                child.terminate()


def _wait_until_open(child: subprocess.Popen[bytes], port: int) -> None:
    while child.poll() is None:
        try:
            redis.Redis(port=port).ping()
        except redis.ConnectionError:
            time.sleep(0.02)
        else:
            return
    raise SystemExit(f"benchmarks: redis-server ended with code {child.returncode}")
