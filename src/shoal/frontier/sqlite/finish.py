"""Ends tries: moves tasks out of LEASED, and applies what the tries say about their hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.core.counters import PAGE_COUNTERS, page_counts
from shoal.core.exits import Blame
from shoal.core.policy import (
    MAX_TRIES,
    after_fault,
    after_pushback,
    after_success,
    after_success_auto,
    smoothed_s,
)
from shoal.core.records import Robots
from shoal.frontier import stored_robots
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.jars import keep_jar
from shoal.frontier.sqlite.lease import queue
from shoal.frontier.sqlite.own_counts import add_own_counts
from shoal.frontier.sqlite.returning import Returning
from shoal.frontier.sqlite.statements import (
    DEAD,
    DELAYED,
    DONE,
    DROPPED,
    ENDED_FROM,
    STATES,
    WAITING,
)
from shoal.frontier.sqlite.step import Step, as_json, name_of
from shoal.frontier.values import Entry, Lease, Outcome, TaskState, Verdict

SAME_MOMENT_S = 0.0001
"""Times read as JSON are rounded to a hundred thousandth of a second."""

Move = tuple[int, int, int, float | None, str | None, str, str]
"""A row for the statement `move_tasks`."""


class Owned(msgspec.Struct, array_like=True):
    """A task whose lease is still owned: a row of the query `owned_tasks`, in its column order."""

    token: str
    id: int
    host_id: int
    chain: str | None
    attempts: int
    since: float
    reserved: float
    shared: int


_read_owned = msgspec.json.Decoder(list[Owned]).decode


def end_tries(current: Step, outcomes: Sequence[Outcome]) -> list[Lease]:
    """End the tries whose leases are still owned, and queue what follows. Returns stale leases."""
    if not outcomes:
        return []
    leases = as_json(name_of(outcome.lease) for outcome in outcomes)
    (found,) = current.execute("owned_tasks", leases, current.id).fetchone()
    owned = {task.token: task for task in _read_owned(found)}
    current.read_hosts(task.host_id for task in owned.values() if task.host_id > 0)
    by_exits = _by_exits(current, owned.values())
    stale: list[Lease] = []
    follow_ups: list[Entry] = []
    moves: list[Move] = []
    counted: list[tuple[int, ...]] = []
    own: list[dict[str, int]] = []
    for outcome in outcomes:
        # A lease ends only once, even if two outcomes have it.
        task = owned.pop(outcome.lease.token, None)
        if task is None:
            stale.append(outcome.lease)
        else:
            moves.append(_end_try(current, task, outcome, by_exits))
            counted.append(page_counts(outcome))
            follow_ups += outcome.follow_ups
            if outcome.own_counts:
                own.append(outcome.own_counts)
            if outcome.cookies is not None and task.chain is not None:
                keep_jar(current, task.chain, outcome.cookies)
    current.write("move_tasks", moves, current.clock.by_machine)
    if by_exits is not None:
        by_exits.write()
    _add_up(current, counted)
    if own:
        add_own_counts(current.connection, current.id, own)
    queue(current, follow_ups)
    current.settle()  # In an exchange, this comes before tasks are taken back or handed out.
    return stale


def _by_exits(current: Step, tasks: Iterable[Owned]) -> Returning | None:
    """What was lent to the tasks of lanes among these. None if there are none."""
    found = [task for task in tasks if task.host_id < 0]
    if not found:
        return None
    current.lanes.read(-task.host_id for task in found)
    lanes = [(task.id, current.lanes.lane(-task.host_id)) for task in found]
    current.read_hosts(lane.host_id for _, lane in lanes)
    by_exits = Returning(current, [task.id for task in found])
    by_exits.read_pairs(lanes)
    return by_exits


def _add_up(current: Step, counted: list[tuple[int, ...]]) -> None:
    """Add what the tries counted of their pages to the counters of the crawl, all at once."""
    for name, counts in zip(PAGE_COUNTERS, zip(*counted, strict=True), strict=False):
        current.tally[name] += sum(counts)


def _end_try(current: Step, task: Owned, outcome: Outcome, by_exits: Returning | None) -> Move:
    host = current.host_of(task.host_id)
    host.leased -= 1
    host.shared -= task.shared
    _adjust(current, host, outcome, task.since)
    _free_turn(current, host, outcome, task)
    state, due = _next_state(current, outcome)
    has_failed = outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
    current.queue_of(task.host_id).waiting += state == WAITING
    host.done += state == DONE
    host.failed += has_failed and (outcome.fault or not outcome.ours)
    if has_failed:
        current.failures.note(host.id, outcome.kind)
    if state >= ENDED_FROM:
        current.touch_chain(task.chain)
        if outcome.lease.task.cookies is not None and state != DEAD:  # Dead tasks may be retried.
            current.execute("strip_cookies", task.id)
    _tally(current, outcome, STATES[state])
    attempts = min(task.attempts + (has_failed and not _was_blocked(outcome)), MAX_TRIES)
    if by_exits is not None and task.host_id < 0:
        by_exits.settle(task.id, current.lanes.lane(-task.host_id), host, outcome)
        by_exits.forget(task.id, has_ended=state >= ENDED_FROM)
    kind = outcome.kind if state == DEAD else None
    return task.id, state, attempts, due, kind, outcome.reason, outcome.detail


def _was_blocked(outcome: Outcome) -> bool:
    """Whether an exit met a block. Blocks are counted apart from failed tries."""
    return outcome.passage is not None and outcome.passage.block != ""


def _next_state(current: Step, outcome: Outcome) -> tuple[int, float | None]:
    match outcome.verdict:
        case Verdict.DONE:
            return DONE, None
        case Verdict.RETRY:
            return DELAYED, current.now + outcome.retry_in_s
        case Verdict.DEAD:
            return DEAD, None
        case Verdict.DROPPED:
            return DROPPED, None
        case Verdict.RETURNED:
            if outcome.retry_in_s > 0:
                return DELAYED, current.now + outcome.retry_in_s
            return WAITING, None


def _adjust(current: Step, host: HostSchedule, outcome: Outcome, leased_at: float) -> None:
    """Apply what a try says about its host: its robots.txt, its pace, its health."""
    if outcome.robots is not None:
        _keep_robots(current, host, outcome.robots, leased_at)
    if outcome.fault:
        is_retry = outcome.lease.task.retry_count > 0
        host.pace = after_fault(host.pace, current.now, leased_at, is_retry=is_retry)
    elif _was_asked_for(outcome):
        host.failures = 0
    if (pushback := outcome.pushback) is not None:
        wait_s, meant = pushback.retry_after_s, pushback.meant
        host.pace = after_pushback(host.pace, current.now, leased_at, wait_s, meant=meant)
    elif current.rate.auto and _gave_page(outcome):
        host.pace = after_success_auto(host.pace, leased_at, outcome.latency_s)
    elif not current.rate.auto and _served(outcome):
        host.pace = after_success(host.pace, leased_at)
    if outcome.latency_s > 0:
        host.latency_s = smoothed_s(host.latency_s, outcome.latency_s)


def _was_asked_for(outcome: Outcome) -> bool:
    """Whether the host was asked for the page.

    A returned task was cut short, or its request was for robots.txt. If an exit is to blame, the
    request did not reach the host.
    """
    passage = outcome.passage
    has_passed = passage is None or passage.blame is Blame.NOBODY
    return outcome.sent and outcome.verdict is not Verdict.RETURNED and has_passed


def _served(outcome: Outcome) -> bool:
    """Whether the host answered like a healthy one that serves us, whatever became of the page."""
    return _was_asked_for(outcome) and not outcome.fault and not outcome.blocked


def _gave_page(outcome: Outcome) -> bool:
    """Whether the host served a page. Other responses are quick, and do not tell how long pages
    take."""
    return _served(outcome) and (outcome.verdict is Verdict.DONE or outcome.ours)


def _free_turn(current: Step, host: HostSchedule, outcome: Outcome, task: Owned) -> None:
    """Free an unused turn, unless the host was served since, or has asked the crawler to wait."""
    is_last = abs(host.next_at - task.reserved) < SAME_MOMENT_S
    if not outcome.sent and is_last and host.pushed_at < task.since:
        host.next_at = current.now


def _keep_robots(current: Step, host: HostSchedule, robots: Robots, leased_at: float) -> None:
    current.execute("save_robots", host.id, stored_robots.pack(robots))
    if robots.location:
        return  # The file is elsewhere. The next lease fetches it there.
    host.robots_at = current.now
    host.robots_until = current.now + robots.ttl_s
    host.crawl_delay_s = robots.crawl_delay_s
    # The turn was reserved before the delay was known.
    host.next_at = max(host.next_at, leased_at + host.crawl_delay_s)


def _tally(current: Step, outcome: Outcome, state: TaskState) -> None:
    tally = current.tally
    tally["leased"] -= 1
    tally[state] += 1
    tally["retries"] += outcome.verdict is Verdict.RETRY
    tally["sent"] += outcome.sent and outcome.verdict is not Verdict.RETURNED
