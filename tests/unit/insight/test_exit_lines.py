"""What `status` says of exits."""

from __future__ import annotations

from shoal.config import Rules
from shoal.core.exits import LaneState, PoolRules, PoolState, Spent
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.exit_lines import exit_lines
from shoal.insight.json import snapshot_json
from shoal.insight.status import Snapshot

DAY = 86_400.0
NOW = 20_000 * DAY + 7.0
RES = PoolState(
    rules=PoolRules(name="res", per_gb=8.0, budget=20.0),
    exits=200,
    ready=171,
    cooling=22,
    out=7,
    spent=Spent(period=20_000, spent=14.4, wire_bytes=1_800_000_000, requests=9, total=99.0),
)


def seen(pools: list[PoolState], lanes: list[LaneState] | None = None) -> Snapshot:
    stats = Stats(crawl="shop", state=CrawlState.RUNNING, rules=Rules(), created_at=0.0)
    return Snapshot(
        stats=stats, workers=[], busiest=[], slowest=[], failing=[], pools=pools, lanes=lanes or []
    )


def test_a_pool_with_a_budget() -> None:
    assert exit_lines(seen([RES]), NOW) == [
        "res: 200 exits: 171 ready, 22 cooling, 7 out · 1.8 GB · 14.40 of 20.00 today"
    ]


def test_what_was_spent_yesterday_is_not_spent_today() -> None:
    (line,) = exit_lines(seen([RES]), NOW + DAY)
    assert line.endswith("· 0.00 of 20.00 today")


def test_a_pool_that_costs_nothing_and_has_nothing() -> None:
    free = PoolState(rules=PoolRules(name="dc"), exits=1)
    assert exit_lines(seen([free]), NOW) == ["dc: 1 exit: none ready"]


def test_what_is_in_the_way() -> None:
    lanes = [
        LaneState(host="a.example", pool="dc", waiting=340, tier_pool="dc", starved_s=75.0),
        LaneState(host="b.example", pool="dc", waiting=9, tier_pool="res"),
        LaneState(host="c.example", pool="dc", waiting=5, is_site_blocking=True),
        LaneState(host="d.example", pool="dc", waiting=5, tier_pool="dc"),
    ]
    assert exit_lines(seen([], lanes), NOW) == [
        "340 tasks wait for an exit",
        "a.example: no exit of dc could be used for 1m 15s",
        "b.example: blocks dc, so its tasks go by res",
        "c.example: blocks whatever exit is used, and is left alone for a while",
    ]


def test_a_crawl_without_exits_says_nothing_of_them() -> None:
    assert exit_lines(seen([]), NOW) == []


def test_the_same_as_json() -> None:
    lanes = [LaneState(host="a.example", pool="dc", waiting=340, starved_s=75.0)]
    told = snapshot_json(seen([RES], lanes), NOW)
    (pool,) = told["pools"]
    assert (pool["pool"], pool["exits"], pool["ready"], pool["cooling"], pool["out"]) == (
        "res",
        200,
        171,
        22,
        7,
    )
    assert (pool["spent"], pool["budget"], pool["spent_in_all"]) == (14.4, 20.0, 99.0)
    assert told["waiting_for_exits"] == 340
    assert told["lanes"][0]["host"] == "a.example"
