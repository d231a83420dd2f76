"""Tasks that were there before their crawl had a pool, or a session, for all."""

from __future__ import annotations

from collections.abc import Callable

from shoal.config import Rules
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.worker.moves import kept_to_rules
from shoal.worker.report import Report
from shoal.worker.slots import nobody_waits

RULES = Rules(pools=("dc", "res"), proxy_pool="dc")


def lease(pool: str | None, *, before: bool = False) -> Lease:
    rules = Rules() if before else RULES
    entry = Admission(rules).admit(Task(url="https://shop.example/a", proxy_pool=pool))
    return Lease(entry.fingerprint, "token", entry.task)


async def visit(lease: Lease, send_by: float, answered: Callable[[], None]) -> Report:
    return Report(Outcome(lease=lease, verdict=Verdict.DONE))


async def visited(lease: Lease, rules: Rules = RULES) -> Outcome:
    return (await kept_to_rules(visit, rules)(lease, 0.0, nobody_waits)).outcome


async def test_one_that_was_there_before_begins_again_in_the_pool() -> None:
    early = lease(None, before=True)
    outcome = await visited(early)
    assert outcome.verdict is Verdict.DROPPED
    assert not outcome.sent
    assert outcome.reason == "begins again as a task of pool 'dc'"
    (again,) = outcome.follow_ups
    assert again.task.proxy_pool == "dc"
    assert again.task.url == early.task.url
    assert again.fingerprint != early.fingerprint  # Else it would be known, and not be added.


async def test_twice_gives_the_same_entry() -> None:
    first, second = [await visited(lease(None, before=True)) for _ in range(2)]
    assert first.follow_ups[0].fingerprint == second.follow_ups[0].fingerprint


async def test_what_knows_its_way_is_visited() -> None:
    for pool in ("dc", "res", "direct"):
        assert (await visited(lease(pool))).verdict is Verdict.DONE


async def test_without_a_pool_for_all_nothing_changes() -> None:
    for rules in (Rules(), Rules(pools=("dc",)), Rules(pools=("dc",), proxy_pool="direct")):
        assert kept_to_rules(visit, rules) is visit


# Sessions

IN_SHOP = Rules(sessions=("shop",), session="shop", pools=("dc",), proxy_pool="dc")


def leased(task: Task, rules: Rules) -> Lease:
    entry = Admission(rules).admit(task)
    return Lease(entry.fingerprint, "token", entry.task)


async def test_one_that_was_there_before_the_session_begins_again_in_it() -> None:
    for rules in (Rules(), RULES):
        early = leased(Task(url="https://shop.example/a"), rules)
        outcome = await visited(early, IN_SHOP)
        assert outcome.reason == "begins again as a task of session 'shop'"
        (again,) = outcome.follow_ups
        assert (again.task.session, again.task.proxy_pool) == ("shop", None)
        assert again.fingerprint != early.fingerprint
        assert (await visited(Lease(again.fingerprint, "t", again.task), IN_SHOP)).sent


async def test_what_knows_its_session_is_visited() -> None:
    for session in ("shop", "shop#alice", "none", None):
        lease = leased(Task(url="https://shop.example/a", session=session), IN_SHOP)
        assert (await visited(lease, IN_SHOP)).verdict is Verdict.DONE


async def test_a_task_with_a_session_does_not_move_to_the_pool() -> None:
    rules = Rules(pools=("dc",), proxy_pool="dc", sessions=("shop",))
    lease = leased(Task(url="https://shop.example/a", session="shop"), rules)
    assert (await visited(lease, rules)).verdict is Verdict.DONE
