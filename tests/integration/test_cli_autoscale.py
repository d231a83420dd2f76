"""`shoal autoscale`: real processes that come and go with the work."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.fleet.fleet import MAX_FRUITLESS
from support.processes import Folder
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import Site
from support.slow_shop import all_found_once, seed, slow_site
from support.until import until_now

CLOSING = """
from pathlib import Path
from links import Links

class Closing(Links):
    name = "links"

    def closed(self, summary):
        with Path("closed").open("a") as file:
            print(summary.stats.state, summary.stats.done, file=file)
"""
QUICK = ("--down-after", "1s", "--zero-after", "1s", "--concurrency", "1", "--json")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def site(folder: Folder) -> Iterator[Site]:
    with slow_site(folder) as site:
        yield site


def test_a_dry_run_says_what_would_be_done_and_starts_nothing(folder: Folder, site: Site) -> None:
    ended = folder.shoal("autoscale", "links.py", "--dry-run")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith("INFO    0 workers as before: the crawl is finished\n")
    seed(folder, site, 1, 5)
    (line,) = folder.shoal("autoscale", "links.py", "--dry-run", "--json").out.splitlines()
    said = json.loads(line)
    assert said.pop("at")
    assert said == {
        "crawl": "links",
        "was": 0,
        "workers": 1,
        "why": "there is work, and no worker has done anything lately",
        "spent": None,
    }
    other = folder.shoal("autoscale", "links.py", "--dry-run", "--name", "other")
    assert other.err.endswith("0 workers as before: nobody has started the crawl\n")
    assert folder.stats("links").waiting == 5


def test_looking_makes_no_store(folder: Folder) -> None:
    folder.write("links.py", "from shoal import Spider\n\n\nclass Links(Spider):\n    pass\n")
    ended = folder.shoal("autoscale", "links.py", "--dry-run")
    assert (ended.code, list(folder.path.glob("*.db"))) == (2, [])


def test_looking_needs_no_results(folder: Folder, site: Site) -> None:
    seed(folder, site, 1, 5)
    ended = folder.shoal(
        "autoscale", "links.py", "--dry-run", "--results", "sqlite:///elsewhere.db"
    )
    assert ended.code == 0, ended
    assert not (folder.path / "elsewhere.db").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--min", "3", "--max", "2"], "--min 3 --max 2: --min may be 0 or more"),
        (["--max", "0"], "--min 0 --max 0"),
        (["--min", "-1"], "--min -1"),
        (["--max", "100000"], "--max 1 to 1,000"),
        (["--max-cost", "5/h"], "need the --price"),
        (["--budget", "5"], "need the --price"),
        (["--price", "cheap"], "--price: not a price: 'cheap' (write 0.05/h)"),
        (["--price", "1/h", "--max-cost", "0.5/h"], "1 worker at 1 an hour would cost more"),
        (["--price", "1/h", "--budget", "nan"], "--budget"),
        (["--price", "1/h", "--budget", "-1"], "--budget"),
        (["--down-after", "soon"], "--down-after: not a time span: 'soon'"),
        (["--max", "many"], "--max"),
    ],
)
def test_what_makes_no_sense_is_one_line(folder: Folder, options: list[str], words: str) -> None:
    folder.write("links.py", "from shoal import Spider\n\n\nclass Links(Spider):\n    pass\n")
    ended = folder.shoal("autoscale", "links.py", *options)
    assert ended.code == 2
    assert words in ended.err


def test_workers_come_with_the_work_and_go_with_it_and_a_killed_one_is_replaced(
    folder: Folder, site: Site
) -> None:
    with folder.running("autoscale", "links.py", "--max", "2", *QUICK) as scaling:
        seed(folder, site, 1, 20)
        (worker,) = until_now("a worker", scaling.workers)
        until_now("a page", lambda: len(site.paths) > 1)
        os.kill(worker, signal.SIGKILL)
        until_now("all pages", lambda: len(set(site.paths)) == 21)
        until_now("no worker", lambda: not scaling.workers())
        scaling.send(signal.SIGTERM)
        ended = scaling.wait()
    assert ended.code == 0
    assert "a worker died (signal SIGKILL); starting another" in ended.err
    assert [(line["was"], line["workers"]) for line in told_in(ended.out)] == [(0, 1), (1, 0)]
    assert told_in(ended.out)[-1]["why"] == "the crawl is finished"
    assert all_found_once(folder, 20)


def told_in(out: str) -> list[dict[str, Any]]:
    """What was decided, without what was only said."""
    lines = [json.loads(line) for line in out.splitlines()]
    return [line for line in lines if line["was"] != line["workers"]]


@pytest.mark.rare
def test_it_ends_with_the_crawl_if_it_is_told_to(folder: Folder, site: Site) -> None:
    seed(folder, site, 1, 8)
    folder.write("closing.py", CLOSING)
    ended = folder.shoal("autoscale", "closing.py", "--until-finished", "--max", "2", *QUICK)
    assert ended.code == 0, ended.err
    assert (folder.path / "closed").read_text() == "finished 9\n", "once, by the last worker"
    assert all_found_once(folder, 8)


@pytest.mark.parametrize("command", first_then_rare("autoscale", "worker"))
def test_a_stop_file_drains_all_workers(folder: Folder, site: Site, command: str) -> None:
    seed(folder, site, 1, 200)
    with folder.running(command, "links.py", "--concurrency", "2", "--stop-file", "stop") as ended:
        until_now("a page", lambda: len(site.paths) > 1)
        folder.write("stop", "")
        assert ended.wait().code == 0
    assert "stop is there: stopping" in ended.err
    stats = folder.stats("links")
    assert (stats.leased, stats.lost) == (0, 0)
    assert 0 < stats.remaining < 200


@pytest.mark.rare
def test_the_budget_is_an_end_as_well(folder: Folder, site: Site) -> None:
    seed(folder, site, 1, 200)
    paid = ("--price", "3600/h", "--budget", "2", "--max-cost", "3600/h")
    with folder.running("autoscale", "links.py", *paid, *QUICK) as scaling:
        ended = scaling.wait()
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == "shoal: the budget of 2 is spent; the crawl is not over"
    assert folder.stats("links").leased == 0


@pytest.mark.rare
def test_workers_that_cannot_work_are_an_error_of_one_line(folder: Folder, site: Site) -> None:
    folder.write(
        "links.py",
        "import sys\nfrom shoal import Spider\n\n"
        "if sys.argv[0] == '-c':\n    raise ValueError('no good')\n\n"
        "class Links(Spider):\n    pass\n",
    )
    seed(folder, site, 1, 5)
    ended = folder.shoal("autoscale", "links.py", *QUICK)
    assert ended.code == 2
    assert ended.err.splitlines()[-1].endswith("ValueError: no good")


DIES = (
    "\n\nimport os, sys\n\nif sys.argv[0] == '-c':  # A worker, not the command.\n    os._exit(3)\n"
)


@pytest.mark.rare
def test_workers_that_keep_dying_are_started_again_later_and_not_by_the_dozen(
    folder: Folder, site: Site
) -> None:
    good = (folder.path / "links.py").read_text("utf-8")
    folder.write("links.py", good + DIES)
    seed(folder, site, 1, 5)
    with folder.running("autoscale", "links.py", "--until-finished", *QUICK) as scaling:
        until_now("a word of it", lambda: "starting again with few in 15 s" in scaling.err)
        assert "workers keep dying (exit code 3)" in scaling.err
        assert not scaling.workers()
        folder.write("links.py", good)
        ended = scaling.wait()
    assert ended.code == 0, ended
    assert ended.err.count("a worker died") < MAX_FRUITLESS
    assert all_found_once(folder, 5)


@pytest.mark.rare
@pytest.mark.parametrize("flavour", ["sqlite", "redis"])
def test_a_fleet_grows_and_shrinks_step_by_step(
    tmp_path: Path, redis_server: RedisServer, flavour: str
) -> None:
    on_redis = {"SHOAL_FRONTIER": redis_server.url} if flavour == "redis" else {}
    folder = Folder(tmp_path, on_redis)
    pages = 260
    with (
        slow_site(folder, 0.4) as site,
        folder.running("autoscale", "links.py", "--max", "3", *QUICK) as scaling,
    ):
        seed(folder, site, 1, pages)
        until_now("three workers", lambda: len(scaling.workers()) == 3)
        until_now("all pages", lambda: len(set(site.paths)) == pages + 1)
        until_now("no worker", lambda: not scaling.workers())
        scaling.send(signal.SIGTERM)
        ended = scaling.wait()
    sizes = [(line["was"], line["workers"]) for line in told_in(ended.out)]
    assert sizes[:3] == [(0, 1), (1, 2), (2, 3)], ended
    assert [size for size in sizes[3:] if size[1] < size[0]][-1] == (1, 0)
    assert all_found_once(folder, pages)


@pytest.mark.rare
def test_while_the_frontier_is_away_all_workers_stay(
    tmp_path: Path, server: RedisServer, raw: object
) -> None:
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url})
    with slow_site(folder) as site:
        seed(folder, site, 1, 60)
        with folder.running("autoscale", "links.py", "--max", "2", *QUICK) as scaling:
            (worker,) = until_now("a worker", scaling.workers)
            until_now("a page", lambda: len(site.paths) > 1)
            server.kill()
            until_now("a word of it", lambda: "the frontier is away" in scaling.err)
            assert scaling.workers()[0] == worker
            server.start()
            until_now("all pages", lambda: len(set(site.paths)) == 61)
            assert scaling.err.count("the frontier is away") == 1
            scaling.send(signal.SIGTERM)
            assert scaling.wait().code == 0
    assert all_found_once(folder, 60)
