"""Lanes for which no exit can be used: when they are looked at again, and when their tasks die."""

from __future__ import annotations

from shoal.core import exit_policy as policy
from shoal.core.exits import PoolRules
from shoal.core.failures import FailureKind
from shoal.core.identities import group_of, is_group
from shoal.frontier.sqlite.hindrances import hindrance
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.step import Step, as_json

_UNKNOWN = PoolRules(name="")
"""The rules of a pool that no worker has brought yet."""


def put_off(
    current: Step, lane: LaneSchedule, pool: str, worker: str, suspect: int | None = None
) -> bool:
    """Put off a lane whose host may be hit, but for which the worker can use nothing of the pool.

    Returns whether its tasks may leave without an exit. If not, the lane is put off, and if that
    lasts too long, its tasks die. If a suspect is given, by its row, only that one dies.
    """
    exits = current.exits
    rules = exits.rules.get(group_of(lane.pool), _UNKNOWN)
    found = hindrance(exits, lane, pool, rules, worker)
    may_leave = rules.allow_direct and not is_group(lane.pool)
    if found.is_busy or may_leave:
        note_look(lane, exits.now, starved=False)
        lane.next_at = current.by_crawl(found.next_at) if found.is_busy else current.now
        return not found.is_busy
    note_look(lane, exits.now, starved=True)
    dies_at = exits.now if found.is_final else lane.state.starved_at + rules.timeout_s
    at = found.next_at
    if exits.now >= dies_at:
        _starve(current, lane, found.reason, suspect)
        at = exits.now
    # Without a look within UNSEEN_S, nothing shows that the lane was starved all the time.
    at = min(at, max(dies_at, exits.now), exits.now + policy.UNSEEN_S / 2)
    lane.next_at = current.by_crawl(at)
    return False


def note_look(lane: LaneSchedule, now: float, *, starved: bool) -> None:
    """Note that a lane was looked at. If that had not happened for long, its crawl stood still, and
    its starving starts anew."""
    state = lane.state
    if not starved:
        state.starved_at = 0.0
    elif not state.starved_at or now - state.looked_at > policy.UNSEEN_S:
        state.starved_at = now
    state.looked_at = now


def _starve(current: Step, lane: LaneSchedule, reason: str, suspect: int | None) -> None:
    which = lane.queue_id, suspect, policy.STARVED_BATCH
    rows = current.execute("starving_tasks", *which).fetchall()
    ids = as_json(row_id for row_id, _ in rows)
    kind = FailureKind.LOGIN if is_group(lane.pool) else FailureKind.EXIT
    current.execute("starve_tasks", kind, reason, current.clock.by_machine, ids)
    current.execute("end_passages", ids)
    for _, chain in rows:
        current.touch_chain(chain)
    current.failures.note(lane.host_id, kind, len(rows))
    lane.waiting -= len(rows)
    current.tally.update(waiting=-len(rows), dead=len(rows))
