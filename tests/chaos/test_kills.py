"""kill -9 of workers and of their parent, at random moments with requests in flight."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.runtime.process import is_dead_here, worker_name
from support.crashes import has_crashed
from support.links import GatedSite, paths_of, put_spider
from support.processes import Folder, Running, is_alive, seeded_random
from support.sites import serving
from support.until import until_now

PAGES = 300
KILLS = 4
COMMAND = ("crawl", "links.py", "--workers", "3")
SCRIPT = """
import shoal
from links import Links

raise SystemExit(shoal.crawl(Links).exit_code)
"""


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with serving(GatedSite(PAGES)) as site:
        yield site
        site.allowed = 10**9


@pytest.fixture
def folder(tmp_path: Path, site: GatedSite) -> Folder:
    folder = Folder(tmp_path)
    # Leases outlast the test, so that those that are not given back at once are missed.
    put_spider(folder, [site], rate="none", lease_s=3600)
    return folder


def wait_for_moment(crawl: Running, site: GatedSite, moment: int) -> None:
    """Let the crawl reach a request, and wait until all its workers run."""
    site.allowed = moment
    until_now(f"request {moment} and more", lambda: len(site.hits) > moment)
    until_now("three workers", lambda: len(crawl.workers()) == 3)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def assert_nothing_is_lost(folder: Folder, site: GatedSite) -> None:
    assert set(site.paths) == set(paths_of(PAGES))
    assert len(folder.export("links")) == PAGES + 1
    stats = folder.stats("links")
    assert (stats.state, stats.done, stats.leased) == ("finished", PAGES + 1, 0)
    assert len(site.hits) <= PAGES + 1 + stats.lost


def test_a_killed_worker_is_replaced_and_loses_nothing(folder: Folder, site: GatedSite) -> None:
    random = seeded_random("kills of single workers")
    with folder.running(*COMMAND) as crawl:
        for moment in sorted(random.sample(range(1, PAGES), KILLS)):
            wait_for_moment(crawl, site, moment)
            kill(random.choice(crawl.workers()))
        site.allowed = 10**9
        ended = crawl.wait()
    assert ended.code == 0, ended
    assert ended.err.count("a worker died (signal SIGKILL); starting another") == KILLS
    assert_nothing_is_lost(folder, site)


def test_a_killed_script_goes_on_where_it_was(folder: Folder, site: GatedSite) -> None:
    """Its only worker runs in the same process, so nobody is left to give back its leases."""
    folder.write("script.py", SCRIPT)
    site.allowed = seeded_random("kill of a script").randrange(1, PAGES)
    with folder.running("script.py", program=sys.executable) as script:
        until_now("requests under way", lambda: len(site.hits) > site.allowed)
        script.kill_all()
    site.allowed = 10**9
    assert folder.stats("links").leased > 0
    with folder.running("script.py", program=sys.executable) as script:
        ended = script.wait()
    assert ended.code == 0, ended
    assert_nothing_is_lost(folder, site)


def test_a_process_that_nobody_has_buried_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not is_dead_here(worker_name(process.pid))
        process.kill()
        until_now("its end", lambda: not is_alive(process.pid))
        assert is_dead_here(worker_name(process.pid))
        assert not is_dead_here(f"elsewhere:{process.pid}")


def test_workers_whose_parent_was_killed_hand_back_their_work(
    folder: Folder, site: GatedSite
) -> None:
    moment = seeded_random("kill of the parent").randrange(1, PAGES)
    with folder.running(*COMMAND) as crawl:
        wait_for_moment(crawl, site, moment)
        workers = crawl.workers()
        crawl.send(signal.SIGKILL)
        site.allowed = 10**9
        until_now("the end of the workers", lambda: not any(map(is_alive, workers)))
        assert not has_crashed(crawl.err), crawl.err
    stats = folder.stats("links")
    assert (stats.leased, stats.lost) == (0, 0)
    assert folder.shoal(*COMMAND).code == 0
    assert_nothing_is_lost(folder, site)
    assert len(site.paths) == PAGES + 1
