"""How many workers a crawl can use, read off looks at it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.ledger import SlotTime, Work
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.advise.demand import Demand, demand_of
from shoal.insight.advise.scaler import Scaler
from shoal.insight.advise.scaling import Bounds, Staff
from shoal.insight.advise.situation import Look, situation
from support.samples import host, worker

CORES, MEMORY = 4.0, 8 << 30


def busy(pages: int = 120, **said: Any) -> Work:
    """A minute of a worker with four slots."""
    usual = {"fetch": 200.0, "parse": 1.0, "polite": 39.0}
    slots = SlotTime(**said.pop("slots", usual))
    known = {"fetch_s": 200.0, "saves": 10, "save_s": 0.1, "main_s": 3.0, **said}
    return Work(seconds=60, pages=pages, ended=pages, slots=slots, fetches=pages, **known)


def look(
    hosts: int = 40, waiting: int = 200, workers: int = 2, *, work: Work | None = None, **said: Any
) -> Look:
    """A crawl with so many hosts, at which so many workers are."""
    lately = work or busy()
    known = {
        "state": CrawlState.RUNNING,
        "started_at": 0.0,
        "waiting": hosts * waiting,
        "added": hosts * waiting + 1_000,
        "done": 1_000,
        "pages_per_s": 2.0 * workers,
        "rules": Rules(rate="1/s"),
        **said,
    }
    return Look(
        at=1_000.0,
        stats=Stats(crawl="shop", created_at=0.0, **known),
        workers=[
            worker(f"m:{at}", slots=4, lately=lately, cores=CORES, memory_bytes=MEMORY)
            for at in range(workers)
        ],
        hosts=[host(f"{at}.example", waiting=waiting, latency_s=1.5) for at in range(hosts)],
    )


def demand_at(seen: Look, before: Look | None = None) -> Demand:
    return demand_of(situation(seen, before), is_one_machine=True)


def test_hosts_that_wait_for_workers() -> None:
    asked = demand_at(look())
    assert 12 <= asked.workers <= 18
    assert asked.why == f"40 hosts at 1/s wait for workers: {asked.workers} workers would do"


def test_hosts_that_are_not_listed_are_not_counted() -> None:
    listed = replace(look(), are_all_hosts=False)
    more = replace(listed, stats=replace(listed.stats, waiting=listed.stats.waiting + 9_000))
    assert demand_at(more).why.startswith("more than 40 hosts at 1/s wait for workers: ")


def test_delayed_tasks_are_no_work_for_many() -> None:
    """Nothing tells which hosts they are at, nor can anybody do them now."""
    assert demand_at(replace(look(), hosts=[])) == Demand(
        workers=1, why="all tasks that are left are delayed: 1 worker would do"
    )


def test_hosts_that_allow_no_more() -> None:
    asked = demand_at(look(hosts=1, waiting=5_000))
    assert asked == Demand(workers=1, why="1 host at 1/s allows no more: 1 worker would do")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"state": CrawlState.PAUSED}, "the crawl is paused"),
        ({"state": CrawlState.NEW}, "nobody has started the crawl"),
        ({"state": CrawlState.CANCELLED, "inbox": 5}, "the crawl is cancelled"),
        ({"state": CrawlState.FINISHED}, "the crawl is finished"),
        (
            {"state": CrawlState.FINISHED, "rules": Rules(max_pages=1_000)},
            "the crawl is finished: --max-pages leaves out 8,000 pages",
        ),
        ({"hosts": 0}, "nothing is to be done"),
    ],
)
def test_nothing_to_do(said: dict[str, Any], why: str) -> None:
    assert demand_at(look(**said)) == Demand(workers=0, why=why, is_idle=True)


@pytest.mark.parametrize(
    "said",
    [
        {"workers": 0},
        {"work": busy(0)},
        {"hosts": 0, "inbox": 10},
        {"hosts": 0, "inbox": 10, "state": CrawlState.FINISHED},
        {"started_at": 995.0, "done": 10},
    ],
)
def test_one_to_begin_with_where_nothing_can_be_said(said: dict[str, Any]) -> None:
    asked = demand_at(look(**said))
    assert (asked.workers, asked.is_idle) == (1, False)


def test_a_growing_crawl_gets_what_its_hosts_could_use_if_it_goes_on_so() -> None:
    few: dict[str, Any] = {"waiting": 1}
    before = look(**few, done=900, added=900)
    assert demand_at(look(**few)).workers == 2, "done in a moment"
    grown = look(**few, added=1_200)
    assert demand_at(grown, before).workers > 8


def test_a_store_that_is_the_limit() -> None:
    slots = {"fetch": 40.0, "parse": 1.0, "stores": 199.0}
    asked = demand_at(look(work=busy(slots=slots, save_s=57.0)))
    assert asked.is_capped
    assert asked.workers <= 2
    assert asked.why == "results or the archive are the limit, and more workers would not help"


def test_cores_of_this_machine_are_a_limit_where_workers_need_them() -> None:
    reading = {"fetch": 100.0, "parse": 60.0, "polite": 80.0}
    work = busy(slots=reading, main_s=55.0, machine_s=230.0)
    seen = situation(look(work=work, workers=4, rules=Rules(rate="none")))
    here, elsewhere = demand_of(seen, is_one_machine=True), demand_of(seen)
    assert here.workers <= 5
    assert elsewhere.workers > 8
    assert elsewhere.why.startswith("reading pages keeps workers busy")


def test_workers_that_wait_for_a_core_are_not_said_to_read_pages() -> None:
    reading = {"fetch": 100.0, "parse": 60.0, "polite": 80.0}
    work = busy(slots=reading, main_s=5.0, queued_s=52.0, machine_s=230.0)
    seen = situation(look(work=work, workers=4, rules=Rules(rate="none")))
    assert demand_of(seen).why.startswith("workers have to wait for a core")


def test_memory_is_a_limit_even_where_cores_are_idle() -> None:
    seen = look(workers=4)

    def with_memory(memory_bytes: int) -> Look:
        small = [replace(at, memory_bytes=memory_bytes, rss_bytes=100 << 20) for at in seen.workers]
        return replace(seen, workers=small)

    assert demand_at(with_memory(8 << 30)).workers > 8
    assert demand_at(with_memory(1 << 30)).workers == 8, "of ten, for which there is room"
    full = demand_at(with_memory(400 << 20))
    assert (full.workers, full.why) == (4, "there is memory for no more: 4 workers would do")
    elsewhere = demand_of(situation(with_memory(400 << 20)))
    assert elsewhere.workers > 8, "new machines bring their own"


def test_a_machine_that_is_busy_with_something_else_keeps_nobody_from_starting_more() -> None:
    assert demand_at(look(work=busy(machine_s=236.0))).workers > 8


def test_growth_is_read_off_looks_that_are_a_while_apart() -> None:
    scaler = Scaler(Bounds(max=20))
    for second in range(0, 60, 3):
        seen = look(waiting=3, added=1_000 + 10 * second, done=900 + 3 * second)
        scaler.decide(seen, Staff(alive=2), float(second))
    assert scaler.staffing is not None
    assert scaler.staffing.workers == 4, "it grows, and a fleet of two may have four"
    assert scaler.decide(None, Staff(alive=4), 61.0).why == "nobody has started the crawl"
