"""Seeds that are brought in by a process of their own, whatever the user's code does there."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from msgspec.structs import replace

from shoal.coordinator.runs import Run
from shoal.coordinator.schedules import Schedule
from shoal.coordinator.seed_process import SeedOrder
from shoal.coordinator.seed_runs import SeedingFailed, seed_in_process
from shoal.frontier.values import CrawlState
from shoal.results import results_at
from shoal.results.port import RunNote
from support.coordinators import NEVER, Office
from support.processes import Folder, is_alive
from support.until import until_now

SPIDERS = """
import os, sys, time
from shoal import Spider

class Good(Spider):
    start_urls = ["http://a.example/"]

class Raises(Good):
    def start(self):
        yield "http://a.example/"
        raise ValueError("no catalogue today")

class Exits(Good):
    def start(self):
        sys.exit(0)

class Vanishes(Good):
    def start(self):
        os._exit(0)

class Dies(Good):
    def start(self):
        os.kill(os.getpid(), 9)

class Prints(Good):
    def start(self):
        print("{}")
        return ["http://a.example/"]

class Hangs(Good):
    def start(self):
        os.symlink(str(os.getpid()), "hanging")
        while True:
            time.sleep(1000)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path)
    folder.write("spiders.py", SPIDERS)
    with chdir(tmp_path):
        yield folder


RUN = "shop@2026-11-15T03:00"


def order(spider: str) -> SeedOrder:
    schedule = Schedule(name="shop", target=f"spiders.py:{spider}", cron=NEVER)
    return SeedOrder(schedule, {}, Run(crawl=RUN, schedule="shop", due_at=0.0, fired_at=0.0))


@pytest.mark.parametrize("spider", ["Good", "Prints"])
async def test_seeds_are_brought_in(folder: Folder, spider: str) -> None:
    await seed_in_process(order(spider))
    stats = await folder.ask_frontier(lambda frontier: frontier.stats(RUN))
    assert (stats.added, stats.state) == (1, "running")


async def test_the_results_know_which_run_it_follows_on(folder: Folder) -> None:
    async with results_at(f"sqlite:///{folder.path}/shoal.db") as results:
        await results.note_run("earlier", RunNote("sqlite:///shoal.db"))
        asked = order("Good")
        assert asked.run is not None
        asked.run.previous = "earlier"
        await seed_in_process(asked)
        note = await results.note_of(RUN)
    assert note is not None
    assert note.previous == "earlier"


async def test_sitemaps_are_queued_once_however_often_it_begins(folder: Folder) -> None:
    asked = order("Good")
    asked.schedule = replace(asked.schedule, sitemaps=["http://a.example/", "nonsense"])
    for _ in range(2):
        await seed_in_process(asked)
    stats = await folder.ask_frontier(lambda frontier: frontier.stats(RUN))
    assert (stats.added, stats.duplicates) == (2, 2)


@pytest.mark.parametrize(
    ("spider", "says", "for_good"),
    [
        ("Raises", "start() raised ValueError: no catalogue today", True),
        ("Exits", "the spider called sys.exit(0)", True),
        ("Vanishes", "its process said nothing, and ended with exit code 0", False),
        ("Dies", "its process said nothing, and ended with signal SIGKILL", False),
        ("Missing", "spiders.py has no class 'Missing'", True),
    ],
)
async def test_whatever_a_spider_does_is_told(
    folder: Folder, spider: str, says: str, for_good: bool
) -> None:
    with pytest.raises(SeedingFailed) as failed:
        await seed_in_process(order(spider))
    assert says in str(failed.value)
    assert failed.value.for_good == for_good


def test_a_run_that_cannot_begin_leaves_nothing_behind(folder: Folder) -> None:
    folder.write("shoal.toml", schedule_of("Raises"))
    office = Office(folder)
    with folder.running("serve") as coordinator:
        office.leads(coordinator)
        crawl = office.begin()
        (run,) = until_now("the run's end", office.past)
        assert (run.crawl, run.state) == (crawl, "failed")
        assert "no catalogue today" in run.reason
        assert folder.stats(crawl).state is CrawlState.CANCELLED


def schedule_of(spider: str) -> str:
    return f'[[schedule]]\nname = "shop"\ntarget = "spiders.py:{spider}"\ncron = "{NEVER}"\n'


def test_a_seeding_process_ends_with_its_coordinator(folder: Folder) -> None:
    """Also one in whose spider time stands still."""
    folder.write("shoal.toml", schedule_of("Hangs"))
    office = Office(folder)
    with folder.running("serve") as coordinator:
        office.leads(coordinator)
        crawl = office.begin()
        until_now("the run", lambda: office.runs().get(crawl))
        hanging = folder.path / "hanging"
        until_now("the seeding process", hanging.is_symlink)
        seeding = int(hanging.readlink().name)
        os.kill(coordinator.pid, signal.SIGKILL)
        until_now("its end", lambda: not is_alive(seeding))
