"""A crawl on a machine that lets it have few files open: that is no fault of the hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hostile import HostileServer
from support.processes import Folder
from support.sites import serving

FILES = 44
"""About twenty are open before the first request: not enough for the 32 that may be in flight."""
HOSTS = 200


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with serving(HostileServer(address="0.0.0.0")) as server:
        yield server


def test_many_hosts_and_few_files(tmp_path: Path, server: HostileServer) -> None:
    folder = Folder(tmp_path)
    hosts = [f"127.1.{number // 200}.{number % 200 + 1}:{server.port}" for number in range(HOSTS)]
    folder.write("urls.txt", "".join(f"http://{host}/ok\n" for host in hosts))
    folder.shoal("seed", "many", "--file", "urls.txt")
    ended = folder.shoal(
        *("crawl", f"http://127.1.9.9:{server.port}/ok", "--name", "many"),
        *("--rate", "none", "--allow-private", "--no-robots", "--max-retries", "0"),
        within=("prlimit", f"--nofile={FILES}"),
    )
    stats = folder.stats("many")
    assert (stats.dead, stats.done) == (0, HOSTS + 1), ended
    assert ended.code == 0
    assert "no new connections, tasks wait: too many open files on this machine" in ended.err
    assert not any(host.failures for host in folder.hosts("many"))
    assert len(server.requests) == HOSTS + 1
