"""Ending a try: the move of a step out of LEASED, and what the try says of its host."""

from __future__ import annotations

import msgspec

from shoal.frontier.port import Outcome, Robots, TaskState, Verdict
from shoal.frontier.sqlite_step import (
    DEAD,
    DELAYED,
    DONE,
    DROPPED,
    STATES,
    WAITING,
    Schedule,
    Step,
)
from shoal.policy import (
    after_fault,
    after_pushback,
    after_success,
    after_success_auto,
    smoothed_s,
)


def end_try(current: Step, outcome: Outcome) -> bool:
    """End one try, if its lease is still owned."""
    owned = current.execute("owned_task", *current.owner(outcome.lease)).fetchone()
    if owned is None:
        return False
    row_id, host_id, chain, attempts, leased_at, reserved = owned
    host = current.host(host_id)
    host.leased -= 1
    _adjust(current, host, outcome, leased_at)
    _free_slot(current, host, outcome, leased_at, reserved)
    state, due = _next_state(current, outcome)
    attempts += outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
    values = (state, attempts, due, outcome.reason, outcome.detail, row_id)
    current.execute("move_task", *values)
    host.waiting += state == WAITING
    host.done += state == DONE
    host.failed += outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
    if state in (DONE, DEAD, DROPPED):
        current.touch_chain(chain)
    _tally(current, outcome, STATES[state])
    return True


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
            return WAITING, None


def _adjust(current: Step, host: Schedule, outcome: Outcome, leased_at: float) -> None:
    """What the try says of its host: its robots.txt, its pace, whether it is well."""
    if outcome.robots is not None:
        _keep_robots(current, host, outcome.robots, leased_at)
    if outcome.pushback is not None:
        wait_s = outcome.pushback.retry_after_s
        host.pace = after_pushback(host.pace, current.now, leased_at, wait_s)
    elif outcome.verdict is Verdict.DONE:
        if current.rate.auto:
            host.pace = after_success_auto(host.pace, leased_at, outcome.latency_s)
        else:
            host.pace = after_success(host.pace, leased_at)
    if outcome.fault:
        is_retry = outcome.lease.task.retry_count > 0
        host.pace = after_fault(host.pace, current.now, leased_at, is_retry=is_retry)
    elif _was_asked_for(outcome):
        host.failures = 0
    if outcome.latency_s > 0:
        host.latency_s = smoothed_s(host.latency_s, outcome.latency_s)


def _was_asked_for(outcome: Outcome) -> bool:
    """Whether the page was asked for. What is given back was cut short, or was for robots.txt."""
    return outcome.sent and outcome.verdict is not Verdict.RETURNED


def _free_slot(
    current: Step, host: Schedule, outcome: Outcome, leased_at: float, reserved: float
) -> None:
    """A slot that was not used is free again, if nobody was served or told to wait since."""
    if not outcome.sent and host.next_at == reserved and host.pushed_at < leased_at:
        host.next_at = current.now


def _keep_robots(current: Step, host: Schedule, robots: Robots, leased_at: float) -> None:
    current.execute("save_robots", host.id, msgspec.json.encode(robots).decode())
    if robots.location:
        return  # It is elsewhere: known only when the next lease has fetched it there.
    host.robots_at = current.now
    host.robots_until = current.now + robots.ttl_s
    host.crawl_delay_s = robots.crawl_delay_s
    # The slot was reserved before the delay was known.
    host.next_at = max(host.next_at, leased_at + host.crawl_delay_s)


def _tally(current: Step, outcome: Outcome, state: TaskState) -> None:
    tally = current.tally
    tally["leased"] -= 1
    tally[state] += 1
    tally["retries"] += outcome.verdict is Verdict.RETRY
    tally["filtered"] += outcome.filtered
    tally["duplicates"] += outcome.duplicates
    tally["items"] += outcome.items
    tally["rejected"] += outcome.rejected
    tally["body_bytes"] += outcome.body_bytes
    tally["sent"] += _was_asked_for(outcome)
    tally["blocked"] += outcome.blocked
    tally["unchanged"] += outcome.unchanged
