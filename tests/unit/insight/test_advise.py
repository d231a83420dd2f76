"""What is said of a crawl: which limit it is at, how many workers are enough, what would help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.config import Rules
from shoal.core.exits import LaneState, PoolRules, PoolState
from shoal.frontier.values import Chain, CrawlState
from shoal.insight.advise.advice import Advised, Readiness, advice, curves
from shoal.insight.advise.chart import plot
from shoal.insight.advise.floor import FloorReason
from shoal.insight.advise.levers import Lever
from shoal.insight.advise.model import Limit
from shoal.insight.advise.prices import NO_PRICES, Prices
from shoal.insight.advise.rendering import advice_json, what_if_rows
from shoal.insight.advise.situation import Situation, situation
from shoal.insight.advise.what_if import parse_what_if
from shoal.insight.advise.words import rows
from support.looks import NOW, host, look, pulse, refusing, seen


def advised(found: Situation, **asked: Any) -> Advised:
    made = advice(found, **asked).advised
    assert made is not None
    return made


def said(found: Situation, **asked: Any) -> dict[str, str]:
    """Names and sentences; of several lines one."""
    prices = asked.get("prices", NO_PRICES)
    told = rows(advice(found, **asked), prices)
    return {name: line if isinstance(line, str) else "; ".join(line) for name, line in told}


def works(made: Advised, lever: Lever) -> bool:
    return next(effect.helps for effect in made.effects if effect.lever is lever)


MANY = [host(f"{number}.example", 300) for number in range(40)]


def test_one_host_at_a_rate_is_work_for_one_worker() -> None:
    found = seen([host(waiting=27_300)], [pulse(name, pages=27) for name in "abcd"])
    made, words = advised(found), said(found)
    assert made.now.forecast.limit is Limit.HOSTS
    assert made.enough.forecast.plan.workers == 1
    assert words["limit"] == "shop.example allows 2/s"
    assert words["floor"] == "shop.example: 27,300 pages at 2/s (one every 0.55 s) = 4h 10m"
    assert words["enough"] == "1 worker: the other 3 make no difference"
    assert words["would not"] == (
        "more workers, or more requests at once per worker: shop.example allows 2/s"
    )
    assert words["would help"].startswith(
        "twice the rate (--rate 4/s), if the hosts agree to it: 2h"
    )


def test_many_hosts_and_few_slots_are_work_for_more() -> None:
    found = seen(MANY, [pulse(pages=480, slots=2, idle="frontier")])
    made, words = advised(found), said(found)
    assert made.now.forecast.limit is Limit.SLOTS
    assert made.enough.forecast.plan.workers > 4
    assert made.enough.forecast.seconds < made.now.forecast.seconds / 4
    assert made.most.forecast.limit is Limit.HOSTS
    assert works(made, Lever.WORKERS)
    assert works(made, Lever.CONCURRENCY)
    assert words["limit"] == "all slots are in use: 1 worker with 2 requests at once"
    assert words["enough"].endswith("then 0.example allows 2/s, and so do 39 others")


def test_hosts_that_are_not_listed_are_others_as_well() -> None:
    at = look(MANY, [pulse(pages=480, slots=2, idle="frontier")])
    many = msgspec.structs.replace(at.stats, waiting=at.stats.waiting + 9_000)
    found = situation(msgspec.structs.replace(at, stats=many, are_all_hosts=False))
    assert said(found)["enough"].endswith("allows 2/s, and so do more than 39 others")


def test_delayed_tasks_are_those_of_one_host() -> None:
    found = seen([], [pulse(pages=480)], delayed=3_000)
    assert said(found)["limit"] == "a host with delayed tasks allows 2/s"
    assert advised(found).enough.forecast.plan.workers == 1


def test_a_host_that_refuses_is_not_asked_for_more() -> None:
    """It answers 429 above 500 pages in 300 s."""
    rules = Rules(rate="5/s")
    found = seen([refusing()], [pulse(pages=100)], rules=rules)
    made, words = advised(found, what_ifs=[parse_what_if("rate=50/s")]), said(found)
    assert made.enough.floor is not None
    assert made.enough.floor.why is FloorReason.REFUSED
    assert not works(made, Lever.RATE)
    assert not works(made, Lever.WORKERS)
    assert words["limit"] == "shop.example answers 429 above about 1.67/s"
    assert "a higher rate: shop.example answers 429" in words["would not"]
    assert words["would help"].startswith("a lower rate")
    assert made.what_ifs[0].forecast.seconds == pytest.approx(made.now.forecast.seconds)


@pytest.mark.parametrize("ahead_s", [-7_200.0, 7_200.0])
def test_who_looks_may_have_another_clock(ahead_s: float) -> None:
    """How long it has been under way is known by that of the frontier."""
    at = look([refusing()], [pulse(pages=100, at=NOW)], rules=Rules(rate="5/s"))
    found = situation(msgspec.structs.replace(at, at=NOW + ahead_s))
    (work,) = found.hosts
    assert found.elapsed_s == 300
    assert work.served_per_s == pytest.approx(500 / 300)
    early = look([host()], [pulse(at=NOW)], started_at=NOW - 20, done=30)
    early = msgspec.structs.replace(early, at=NOW + ahead_s)
    assert advice(situation(early)).readiness is Readiness.TOO_EARLY


def test_nor_is_one_whose_pause_is_over_for_the_moment() -> None:
    before = look([refusing()])
    resting = msgspec.structs.replace(refusing(), penalty_s=0.0)
    (work,) = seen([resting], before=before).hosts
    assert work.served_per_s == pytest.approx(500 / 300)
    (work,) = seen([resting]).hosts
    assert work.served_per_s == 0


def test_a_slower_rate_than_a_host_refuses_is_a_slower_rate() -> None:
    found = seen([refusing()], rules=Rules(rate="1/s"))
    floor = advised(found).enough.floor
    assert floor is not None
    assert floor.why is FloorReason.RATE
    assert floor.turn_s == pytest.approx(1.1)


def test_no_workers_are_advised_to_save_seconds() -> None:
    fast = [host(f"{number}.example", 30, latency_s=0.02) for number in range(1_000)]
    busy = [pulse(pages=6_000, slots=2, latency_s=0.02, main_s=0.0005)]
    made = advised(seen(fast, busy, rules=Rules(rate="none")))
    assert made.now.forecast.seconds > 100
    assert made.most.forecast.seconds < 5
    assert made.enough.forecast.seconds < made.most.forecast.seconds + 2
    assert made.enough.forecast.plan.workers < made.most.forecast.plan.workers / 3


def test_a_crawl_delay_is_never_undercut() -> None:
    found = seen([host(crawl_delay_s=10.0)], [pulse(pages=6)])
    made = advised(found, what_ifs=[parse_what_if("rate=none,workers=50,concurrency_per_host=99")])
    assert not any(effect.helps for effect in made.effects)
    assert made.what_ifs[0].forecast.seconds >= 1_000 * 10.0
    words = said(found)
    assert words["limit"] == "shop.example asks for 10 s between requests (Crawl-delay)"
    assert "a higher rate: shop.example asks for 10 s" in words["would not"]
    assert words["would help"] == "nothing that we know of"


@pytest.mark.parametrize(
    ("found", "limit", "words"),
    [
        (
            seen([host(waiting=9_000)], [pulse(pages=4_700, slots=16)], rules=Rules(rate="none")),
            Limit.HOSTS,
            "shop.example answers in 0.2 s, and only so many requests are made at once",
        ),
        (
            seen([host()], [pulse(pages=40)], rules=Rules(rate="auto")),
            Limit.HOSTS,
            "shop.example answers in a time that allows 1/s (rate: auto)",
        ),
        (
            seen([host(penalty_s=4.0)], [pulse(pages=15)]),
            Limit.HOSTS,
            "shop.example asked for 4 s between requests (429 or 503)",
        ),
        (
            seen(MANY, [pulse(pages=2_900, slots=32, main_s=0.02)], rules=Rules(rate="none")),
            Limit.CPU,
            "workers are busy reading pages, which takes 20 ms of a core for each",
        ),
        (
            seen(
                MANY,
                [pulse(pages=2_900, slots=32, queued_s=52.0, machine_s=240.0)],
                rules=Rules(rate="none"),
            ),
            Limit.CPU,
            "workers wait for a core longer than they use one: 100% of the cores are in use",
        ),
        (
            seen(
                MANY,
                [pulse(pages=600, slots=32, idle="stores", save_s=55.0)],
                rules=Rules(rate="none"),
            ),
            Limit.STORES,
            "results or archive: slots wait for them",
        ),
        (
            seen(
                MANY,
                [pulse(pages=600, slots=32, idle="frontier", finish_s=59.0)],
                rules=Rules(rate="none"),
            ),
            Limit.FRONTIER,
            "the frontier: slots wait for it",
        ),
        (
            seen([], [pulse(pages=200)], chains=[Chain("basket", 900)], rules=Rules(rate="none")),
            Limit.CHAINS,
            "basket is a chain, and goes one page after the other",
        ),
    ],
)
def test_every_limit_has_its_words(found: Situation, limit: Limit, words: str) -> None:
    assert advised(found).now.forecast.limit is limit
    assert said(found)["limit"].startswith(words)


def test_stores_that_are_slow_are_not_helped_by_workers() -> None:
    found = seen(
        MANY, [pulse(pages=600, slots=32, idle="stores", save_s=55.0)], rules=Rules(rate="none")
    )
    made = advised(found)
    assert not works(made, Lever.WORKERS)
    assert works(made, Lever.STORES)


def test_exits_that_are_few_are_the_limit_and_cost_what_they_cost() -> None:
    pool = PoolState(rules=PoolRules(name="dc", pair_interval_s=10.0, per_gb=8.0), exits=3, ready=3)
    at = look([host(waiting=3_000)], [pulse(pages=18)], rules=Rules(rate="none", pools=("dc",)))
    lane = LaneState(pool="dc", host="shop.example", waiting=3_000)
    found = situation(msgspec.structs.replace(at, pools=[pool], lanes=[lane]))
    made = advised(found)
    assert made.now.forecast.limit is Limit.EXITS
    assert works(made, Lever.EXITS)
    assert made.enough.cost is not None
    assert made.enough.cost.proxies == pytest.approx(3_000 * 50_000 / 1e9 * 8.0)


@pytest.mark.parametrize(
    ("fields", "readiness", "words"),
    [
        ({"state": CrawlState.PAUSED}, Readiness.PAUSED, "it is paused: shoal resume shop"),
        (
            {"state": CrawlState.PAUSED, "crawl": "a b"},
            Readiness.PAUSED,
            "it is paused: shoal resume 'a b',",
        ),
        ({"state": CrawlState.FINISHED}, Readiness.FINISHED, "it is finished"),
        (
            {"state": CrawlState.FINISHED, "rules": Rules(max_pages=500)},
            Readiness.FINISHED,
            "it is finished: 1,000 pages more would go beyond --max-pages",
        ),
        ({"state": CrawlState.CANCELLED}, Readiness.CANCELLED, "it was cancelled"),
        ({"state": CrawlState.NEW, "started_at": None}, Readiness.NEW, "nobody has started it"),
        ({"waiting": 0}, Readiness.IDLE, "nothing is left to do"),
        ({"waiting": 0, "inbox": 7}, Readiness.SEEDING, "seeds are being read"),
        (
            {"started_at": NOW - 20, "done": 30},
            Readiness.TOO_EARLY,
            "too early: after 20 s and 30 pages; there is enough to go by after 60 s or 200 pages",
        ),
    ],
)
def test_where_nothing_is_to_be_advised_it_says_why(
    fields: dict[str, Any], readiness: Readiness, words: str
) -> None:
    found = seen([host()], **fields)
    assert advice(found).readiness is readiness
    ((name, line),) = said(found).items()
    assert name == "advice"
    assert line.startswith(words)
    assert what_if_rows(advice(found), NO_PRICES) == []


def test_without_workers_and_with_workers_that_say_nothing() -> None:
    nobody = situation(look([host()]))
    assert said(nobody)["advice"].startswith("no worker is at work: start one")
    silent = situation(look([host()], [pulse(pages=0)]))
    assert said(silent) == {"advice": "too early: no worker has done anything lately"}


def test_hosts_that_do_not_answer_are_left_out_and_named() -> None:
    broken = host("down.example", failures=12)
    found = seen([host(), broken])
    assert said(found)["left"] == "2,000 pages; without those of 1 host that keeps failing"
    only = seen([broken], [pulse(pages=0)])
    assert said(only)["advice"] == (
        "all that is left is at 1 host that keeps failing; more workers would not help"
    )


def test_a_crawl_that_grows_has_no_end() -> None:
    before = look([host()], done=400, added=1_000)
    growing = seen([host()], done=500, added=1_150, before=before)
    assert "it is still growing, and no end can be said" in said(growing)["left"]
    slower = seen([host()], done=500, added=1_050, before=before)
    assert said(slower)["left"].endswith("each page leads to 0.50 new ones, which are counted in")


def test_the_last_seconds_count_where_they_were_faster() -> None:
    before = msgspec.structs.replace(look([host()], done=400), at=NOW - 2)
    assert seen([host()], done=500, before=before).per_s == 50
    assert seen([host()], done=500, before=before, pages_per_s=70.0).per_s == 70
    assert seen([host()], done=429, before=before, pages_per_s=7.0).per_s == 7  # Too few to say.


def test_chains_are_as_quick_as_they_were_seen_to_be() -> None:
    """Where all of them wait for the same commits, these come sooner than is usual."""
    chains = [Chain(f"basket-{at}", 500) for at in range(10)]
    own = pulse(pages=4_200, slots=16, latency_s=0.1, main_s=0.0, finish_s=1.0, save_s=1.0)
    found = seen([], [own], chains=chains, rules=Rules(rate="none"), pages_per_s=90.0)
    now = advised(found).now.forecast
    assert now.limit is Limit.CHAINS
    assert now.per_s == pytest.approx(90, rel=0.02)
    assert now.seconds == pytest.approx(5_000 / 90, rel=0.03)


def test_cores_that_others_take_are_worth_a_word() -> None:
    found = seen(MANY, [pulse(stolen_s=60.0), pulse("b", stolen_s=60.0)])  # On one machine.
    assert said(found)["machines"].endswith(
        "other virtual machines took 25% of the CPU time of those at work (steal)"
    )
    assert advice_json(advice(found), NO_PRICES)["stolen"] == pytest.approx(0.25)
    assert "steal" not in said(seen(MANY, [pulse(stolen_s=6.0)]))["machines"]


def test_a_deadline_says_how_many_it_takes_or_that_none_do() -> None:
    found = seen(MANY, [pulse(pages=480, slots=2, idle="frontier")])
    best = advised(found).enough.forecast
    due = advised(found, deadline=NOW + 2 * best.seconds).due
    assert due is not None
    assert due.workers is not None
    assert 1 < due.workers < best.plan.workers
    assert due.forecast.seconds <= 2 * best.seconds
    words = said(found, deadline=NOW + 10)["deadline"]
    assert words.startswith("no number of workers meets 2027-01-15 08:00:10 UTC: at best")
    assert said(found, deadline=NOW + 86_400)["deadline"].startswith("1 worker is enough")


def test_what_if_is_a_table_and_a_line_of_the_chart() -> None:
    asked = [parse_what_if("workers=4"), parse_what_if("workers=4,rate=4/s")]
    found = seen(MANY, [pulse(pages=480, slots=2, idle="frontier")])
    told = advice(found, what_ifs=asked)
    table = what_if_rows(told, NO_PRICES)
    assert [row[0] for row in table] == ["as it is", "workers=4", "workers=4,rate=4/s"]
    assert [row[1] for row in table] == ["1", "4", "4"]
    drawn = curves(found, asked)
    assert [curve.what for curve in drawn] == ["as it is", "rate=4/s"]
    for curve in drawn:
        times = [point.seconds for point in curve.points]
        assert times == sorted(times, reverse=True)
        assert curve.points[0].plan.workers == 1
    assert told.advised is not None
    picture = plot("shop", "<&>", told.advised, drawn)
    assert "rate=4/s" in picture
    assert "&lt;&amp;&gt;" in picture


@pytest.mark.parametrize("found", [seen(MANY), seen([host()], state=CrawlState.PAUSED)])
def test_json_has_all_of_it(found: Situation) -> None:
    prices = Prices(machine=0.1)
    made = advice(found, deadline=NOW + 60, prices=prices)
    told = msgspec.json.decode(msgspec.json.encode(advice_json(made, prices)))
    assert told["crawl"] == "shop"
    assert told["standing"] == made.readiness
    if made.advised is not None:
        assert told["enough"]["workers"] == made.advised.enough.forecast.plan.workers
        assert told["enough"]["cost"]["currency"] == "$"
        assert {effect["lever"] for effect in told["effects"]} >= {"workers", "rate"}


def test_a_crawl_that_takes_longer_than_there_are_years_has_advice() -> None:
    found = seen([host(waiting=10**8)], rules=Rules(rate="0.0001/h"))
    assert said(found)["now"].endswith("(after 9999 UTC)")
