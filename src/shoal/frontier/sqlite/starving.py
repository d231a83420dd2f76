"""Lanes that nothing can be used for: when they are looked at again, and when their tasks die."""

from __future__ import annotations

from shoal.core import exit_policy as policy
from shoal.core.exits import PoolRules
from shoal.core.failures import FailureKind
from shoal.core.identities import group_of, is_group
from shoal.frontier.sqlite.hindrances import hindrance
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.step import Step, as_json

_UNKNOWN = PoolRules(name="")
"""What holds for a pool that nobody has brought."""


def put_off(
    current: Step, lane: LaneSchedule, pool: str, worker: str, suspect: int | None = None
) -> bool:
    """Nothing of the pool could be used for the lane by a worker, though its host may be hit.
    Returns whether its tasks may leave without an exit. Else it is put off; if that lasts too long,
    its tasks die. A suspect, by its row, dies alone."""
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
    # Who does not look for long does not know that it was starved all the time.
    at = min(at, max(dies_at, exits.now), exits.now + policy.UNSEEN_S / 2)
    lane.next_at = current.by_crawl(at)
    return False


def note_look(lane: LaneSchedule, now: float, *, starved: bool) -> None:
    """A lane was looked at. If nobody did for long, its crawl stood still, and it begins anew."""
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
