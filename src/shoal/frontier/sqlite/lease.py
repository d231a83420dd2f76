"""Queues tasks and takes back lost ones. Also says how many may be leased, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.core import task as wire
from shoal.core.failures import FailureKind
from shoal.core.policy import MAX_TRIES, is_poison
from shoal.core.task import Task
from shoal.core.urls import number_of
from shoal.frontier.facts import POISON, RECLAIM_BATCH
from shoal.frontier.sqlite.alike import keep_out
from shoal.frontier.sqlite.held_up import next_look
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.returning import Returning
from shoal.frontier.sqlite.statements import DEAD, DELAYED, HELD_BACK, SQL, STATES, WAITING
from shoal.frontier.sqlite.step import Step, as_json
from shoal.frontier.values import Added, Ask, CrawlState, Entry

Line = HostSchedule | LaneSchedule
"""The queue in which a task waits."""

NEXT, BEHIND = 0, 1
"""The places of tasks that wait in a chain. The target of a redirect is next, as it belongs to the
same step as the request that led there. The others go in the order of their rows."""


def queue(current: Step, entries: Sequence[Entry]) -> Added:
    """Queue tasks never seen before. If a task is given twice, the first one counts."""
    if not entries:
        return Added()
    found: dict[int, Task] = {}
    for entry in entries:
        found.setdefault(number_of(entry.fingerprint), entry.task)
    asked = {"crawl_id": current.id, "fingerprints": as_json(found)}
    (seen,) = current.connection.execute(SQL["seen"], asked).fetchone()
    for fingerprint in msgspec.json.decode(seen):
        del found[fingerprint]
    rules, kept_out = current.rules, 0
    if found and (rules.max_pages_per_shape or rules.max_pages_per_host):
        kept_out = keep_out(current, found, entries)
    # Most pages lead to nothing new.
    hosts = current.hosts_named(task.site for task in found.values()) if found else {}
    lanes = _lanes_of(current, found.values(), hosts)
    rows = []
    for fingerprint, task in found.items():
        line: Line = hosts[task.site]
        if task.pool is not None:
            line = lanes[line.id, task.pool]
        state, place = enter(current, line, task.chain, NEXT if task.redirects else BEHIND)
        whose = (current.id, fingerprint, line.queue_id)
        tries = min(task.retry_count, MAX_TRIES)
        rows.append((*whose, task.priority, state, place, task.chain, tries, wire.encode(task)))
    current.write("add_tasks", rows)
    added = Added(len(rows), len(entries) - len(rows) - kept_out)
    current.tally.update(added=added.added, waiting=added.added, duplicates=added.duplicates)
    current.tally["filtered"] += kept_out
    return added


def _lanes_of(
    current: Step, tasks: Iterable[Task], hosts: Mapping[str, HostSchedule]
) -> dict[tuple[int, str], LaneSchedule]:
    """The lanes of the tasks that have a pool, by host and pool."""
    names = [(hosts[task.site].id, task.pool) for task in tasks if task.pool]
    return current.lanes.named(names) if names else {}


def enter(current: Step, line: Line, chain: str | None, turn: int = BEHIND) -> tuple[int, int]:
    """The state and the place in which a task starts to wait: with its host, in its lane, or for
    its turn in its chain."""
    if chain is None:
        line.waiting += 1
        return WAITING, current.next_place()
    current.touch_chain(chain)
    return HELD_BACK, turn


def wait_s(current: Step, ask: Ask) -> float | None:
    if current.state is not CrawlState.RUNNING:
        return None
    moments = [current.execute("next_due", current.id).fetchone()[0]]
    if allowed(current, 1) > 0:
        moments.append(current.execute("next_ready", current.id).fetchone()[0])
        if ask.pools and ask.slots > 0:
            moments.append(next_look(current, ask))
    known = [moment for moment in moments if moment is not None]
    return max(min(known) - current.now, 0.0) if known else None


def allowed(current: Step, limit: int) -> int:
    if current.state is not CrawlState.RUNNING:
        return 0
    if current.rules.max_pages is None:
        return limit
    return min(limit, current.rules.max_pages - current.pages_tried() - current.count("leased"))


def reclaim(current: Step) -> None:
    """Take back what is due: retries whose wait is over, and expired leases."""
    due = current.execute("due_tasks", current.id, current.now, RECLAIM_BATCH).fetchall()
    for row in due:
        row_id, host_id, _, state, *_ = row
        if state == DELAYED:
            # At the end of the queue: failed pages must not take the turns of the host's others.
            current.execute("wake_task", current.next_place(), row_id)
            current.queue_of(host_id).waiting += 1
            current.tally.update(delayed=-1, waiting=1)
        else:
            lose(current, row)
    # So that these tasks can be handed out in the same step.
    current.advance_chains()
    current.save_hosts()


def lose(current: Step, row: tuple[int, int, str | None, int, int, int]) -> None:
    """Take back a task whose worker is gone. If too many workers died with it, it is poison."""
    row_id, host_id, chain, _, losses, shared = row
    poisoned = is_poison(losses + 1, current.rules.max_losses)
    host = current.host_of(host_id)
    state, kind, reason = WAITING, None, ""
    if poisoned:
        state, kind, reason = DEAD, FailureKind.POISON, POISON.format(losses + 1)
        current.failures.note(host.id, kind)
    current.execute("lose_task", state, kind, reason, current.clock.by_machine, row_id)
    host.leased -= 1
    host.shared -= shared
    current.queue_of(host_id).waiting += state == WAITING
    if host_id < 0:
        back = Returning(current, [row_id])
        back.settle(row_id, current.lanes.lane(-host_id), host, None)
        back.forget(row_id, has_ended=state == DEAD)
        back.write()
    if state == DEAD:
        current.touch_chain(chain)
    current.tally.update(leased=-1, lost=1, **{STATES[state]: 1})
