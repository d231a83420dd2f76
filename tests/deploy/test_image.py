"""The image is what it says, and crawls."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.version import __version__
from support import containers
from support.containers import BUILD_S, Container, as_in_compose, output_of, running
from support.links import GatedSite, put_spider
from support.markdown import ROOT, blocks
from support.postgres_servers import PostgresServer
from support.processes import Folder
from support.redis_chaos import assert_links_are_complete
from support.redis_servers import RedisServer
from support.s3_servers import Rclone
from support.server_process import free_port, program
from support.sites import serving
from support.until import until_now

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(BUILD_S)]

PAGES = 200
LARGEST_MB = 180
GUIDE = ROOT / "docs/guides/deploy.md"
PYTHON = "/opt/shoal/bin/python"

BILL = "print(open('/opt/shoal/sbom.cdx.json').read())"
PACKAGES = """
import importlib.metadata, json
found = importlib.metadata.distributions(path=["/opt/shoal/lib/python3.11/site-packages"])
print(json.dumps(sorted(package.metadata["Name"].lower() for package in found)))
"""
ORPHANS = """
import os, time
if os.fork() == 0:
    for _ in range(10):
        if os.fork() == 0:
            os._exit(0)
    os._exit(0)
os.wait()
"""
ZOMBIES = """
import pathlib
found = pathlib.Path("/proc").glob("[0-9]*/stat")
print(sum(path.read_text().rpartition(")")[2].split()[0] == "Z" for path in found))
"""

SEALED = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
assert ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) == 0, "Linux 6.3 or later"
os.execvp("shoal", ["shoal", *sys.argv[1:]])
"""
"""Does what MemoryDenyWriteExecute=yes does, and becomes Shoal."""


def test_it_is_small_and_nobodys(image: str) -> None:
    known = containers.inspect(image)
    assert known["Size"] < LARGEST_MB * 10**6
    said = known["Config"]
    assert said["User"] == "10001:10001"
    assert said["Labels"]["org.opencontainers.image.version"] == __version__
    assert said["Labels"]["org.opencontainers.image.licenses"] == "MIT"


def test_it_has_no_shell_and_tells_what_it_has(image: str) -> None:
    with pytest.raises(AssertionError, match="stat /bin/sh: no such file"):
        output_of(image, "/bin/sh")
    bill = json.loads(output_of(image, PYTHON, "-c", BILL))
    packages = json.loads(output_of(image, PYTHON, "-c", PACKAGES))
    assert sorted(part["name"].lower() for part in bill["components"]) == packages
    assert {"shoal", "redis", "asyncpg", "obstore"} <= set(packages)
    assert "pip" not in packages


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with serving(GatedSite(PAGES)) as site:
        yield site
        site.allowed = 10**9


@pytest.fixture
def folder(
    tmp_path: Path, redis_server: RedisServer, postgres_server: PostgresServer, site: GatedSite
) -> Folder:
    """What is here: a spider, and commands that ask what became of the crawl."""
    postgres_server.execute("DROP DATABASE IF EXISTS fleet", "CREATE DATABASE fleet")
    stores = {
        "SHOAL_FRONTIER": redis_server.url,
        "SHOAL_RESULTS": postgres_server.url_of("fleet"),
    }
    folder = Folder(tmp_path, stores)
    roomy = {"rate": "none", "concurrency": 4, "concurrency_per_host": PAGES}
    put_spider(folder, [site], name="links", lease_s=3.0, **roomy)
    return folder


@pytest.fixture
def links_image(image: str, folder: Folder, tmp_path: Path) -> str:
    """The image of somebody who has done as the guide says: a spider on top of ours."""
    written = next(block.text for block in blocks(GUIDE) if block.language == "dockerfile")
    context = tmp_path / "project"
    context.mkdir()
    (context / "Containerfile").write_text(written)
    (context / "spider.py").write_bytes((folder.path / "links.py").read_bytes())
    (context / "shoal.toml").write_text("")
    return containers.build(context, "localhost/links", tmp_path)


@pytest.fixture
def stores(
    tmp_path: Path, secrets: Path, redis_server: RedisServer, postgres_server: PostgresServer
) -> Iterator[dict[str, str]]:
    """Puts the addresses of the test's stores among the secrets. Gives what is different in the
    environment, where the S3 of compose.yaml is another one."""
    (secrets / "frontier").write_text(redis_server.url)
    (secrets / "results").write_text(postgres_server.url_of("fleet"))
    with Rclone(tmp_path / "s3") as s3:
        yield s3.environment


@pytest.fixture
def options(secrets: Path, stores: dict[str, str]) -> list[str]:
    """As the workers of compose.yaml."""
    return [*as_in_compose("worker", secrets), *(f"--env={'='.join(it)}" for it in stores.items())]


def has_begun(site: GatedSite, container: Container) -> bool:
    assert not container.has_ended(), container.log
    return len(site.hits) > site.allowed


def test_three_containers_crawl_and_two_of_them_end_early(
    links_image: str, options: list[str], folder: Folder, site: GatedSite
) -> None:
    join = ("worker", "spider.py", "--until-finished")
    with (
        running(links_image, "crawl", "spider.py", options=options) as first,
        running(links_image, *join, options=options) as killed,
        running(links_image, *join, options=options) as stopped,
    ):
        site.allowed = PAGES // 4
        until_now("the crawl to begin", lambda: has_begun(site, first))
        until_now("all three to hold tasks", lambda: len(folder.holders("links")) == 3)
        looked = killed.execute("shoal", "worker", "--alive")
        assert (looked.code, looked.err) == (0, ""), looked
        killed.kill()
        assert killed.wait().code == 137
        site.allowed = PAGES // 2
        drained = stopped.stop()
        site.allowed = 10**9
        ended = first.wait()
    assert drained.code == 0, drained
    assert "stopping: finishing what is in hand" in drained.err
    assert ended.code == 0, ended
    assert "Traceback" not in ended.err + drained.err
    stats = assert_links_are_complete(folder, [site], PAGES)
    assert stats.lost > 0


def test_the_first_process_buries_orphans(image: str, options: list[str], folder: Folder) -> None:
    with running(image, "worker", options=options) as container:
        until_now("it to run", lambda: is_alive(container))
        assert container.execute(PYTHON, "-c", ORPHANS).code == 0
        until_now("no zombies", lambda: container.execute(PYTHON, "-c", ZOMBIES).out.strip() == "0")
        ended = container.stop()
    assert ended.code == 0, ended


def is_alive(container: Container) -> bool:
    assert not container.has_ended(), container.log
    return container.execute("shoal", "worker", "--alive").code == 0


def test_the_coordinator_of_compose(
    image: str, secrets: Path, stores: dict[str, str], folder: Folder
) -> None:
    said = containers.compose()["services"]["serve"]
    port = free_port()
    command = [word.replace("0.0.0.0:7350", f"127.0.0.1:{port}") for word in said["command"]]
    with running(image, *command, options=as_in_compose("serve", secrets)) as container:
        _, *check = (word.replace("7350", str(port)) for word in said["healthcheck"]["test"])
        until_now("it to be well", lambda: container.execute(*check).code == 0)
        token = (secrets / "read-token").read_text()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics",
            headers={"Authorization": f"Bearer {token}", "Host": f"serve:{port}"},
        )
        with urllib.request.urlopen(asked) as answer:
            assert b"shoal_build_info" in answer.read()
        ended = container.stop()
    assert ended.code == 0, ended


def calls_allowed_by(unit: Path) -> list[str]:
    """The system calls that a unit's SystemCallFilter leaves."""
    text = re.sub(r"^#.*\n", "", unit.read_text("utf-8"), flags=re.MULTILINE)
    allowed: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", text, re.MULTILINE):
        found = {call for name in line.strip("~").split() for call in calls_of(name)}
        allowed = allowed - found if line.startswith("~") else allowed | found
    return sorted(allowed)


def calls_of(name: str) -> set[str]:
    """A system call, or those of a group."""
    if not name.startswith("@"):
        return {name}
    listed = containers.run(program("systemd-analyze"), "syscall-filter", "--no-pager", name).out
    words = [line.strip() for line in listed.splitlines()[1:] if "#" not in line]
    return {call for word in words for call in calls_of(word)}


def test_the_system_calls_of_the_unit_are_enough(
    links_image: str, options: list[str], folder: Folder, site: GatedSite, tmp_path: Path
) -> None:
    """A container with the filter that systemd would set, and no memory that was written to and can
    be run."""
    allowed = calls_allowed_by(ROOT / "deploy/systemd/shoal-worker@.service")
    assert "execve" in allowed
    assert "mount" not in allowed
    (profile := tmp_path / "calls.json").write_text(
        json.dumps(
            {
                "defaultAction": "SCMP_ACT_ERRNO",
                "syscalls": [{"names": allowed, "action": "SCMP_ACT_ALLOW"}],
            }
        )
    )
    site.allowed = 10**9
    filtered = [*options, f"--security-opt=seccomp={profile}", f"--entrypoint={PYTHON}"]
    command = ("-c", SEALED, "crawl", "spider.py", "--workers", "2")
    with running(links_image, *command, options=filtered) as container:
        ended = container.wait()
    assert ended.code == 0, ended
    assert_links_are_complete(folder, [site], PAGES)
