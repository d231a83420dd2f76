"""Runs a private PostgreSQL to measure, on a free port, in a temporary folder, with defaults."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from benchmarks.site import free_port


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a new server, and remove it at the end. Gives the address of its database."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not binaries:
        raise SystemExit("benchmarks: postgresql is missing; scripts/servers installs it")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="shoal-postgres-") as folder:
        as_postgres = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root.
            shutil.chown(folder, "postgres", "postgres")
            as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        initdb = [binaries[0] / "initdb", "-D", f"{folder}/data", "-U", "bench", "-A", "trust"]
        options = ["--no-sync", "-E", "UTF8", "--locale=C"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        subprocess.run([*as_postgres, *initdb, *options], check=True, **quiet)  # type: ignore[call-overload]
        command = [binaries[0] / "postgres", "-D", f"{folder}/data", "-p", f"{port}", "-k", folder]
        listening = ["-c", "listen_addresses=127.0.0.1"]
        with subprocess.Popen([*as_postgres, *command, *listening], **quiet) as child:  # type: ignore[call-overload]
            try:
                _wait_until_ready(binaries[0], port, child)
                yield f"postgresql://bench@127.0.0.1:{port}/postgres"
            finally:
                child.send_signal(2)


@contextmanager
def new_database(address: str) -> Iterator[str]:
    """Create an empty database on the server, and drop it at the end. Gives its address."""
    asyncio.run(_execute(address, "CREATE DATABASE run"))
    try:
        yield f"{address.rpartition('/')[0]}/run"
    finally:
        asyncio.run(_execute(address, "DROP DATABASE run WITH (FORCE)"))


async def _execute(address: str, statement: str) -> None:
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _wait_until_ready(binaries: Path, port: int, child: subprocess.Popen[bytes]) -> None:
    command = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", f"{port}"]
    while child.poll() is None:
        if subprocess.run(command).returncode == 0:
            return
        time.sleep(0.05)
    raise SystemExit(f"benchmarks: postgres ended with code {child.returncode}")
