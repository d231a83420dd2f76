"""Handing out the tasks of lanes: each with an exit that may be used at its host."""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import merge
from typing import Protocol

import msgspec

from shoal.core import exit_policy as policy
from shoal.core.exits import Exit, Lent
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.queued import Queued
from shoal.frontier.sqlite.starving import note_look, put_off
from shoal.frontier.sqlite.step import Step
from shoal.frontier.values import Ask, Lease

_read_tried = msgspec.json.Decoder(list[str]).decode

Passing = tuple[int, str, int, str, float, int, str]
"""A row of the table `passages`."""


class LaneTask(Queued):
    """A task that waits in a lane, in the order of the query `lane_tasks`."""

    blocks: int = 0
    tried: str = "[]"


class Grants(Protocol):
    """Where the leases of a step are collected."""

    def grant(
        self, host: HostSchedule, task: Queued, lane: LaneSchedule, *, alone: bool = False
    ) -> Lease: ...


class Lending:
    """What one ask gets of the lanes."""

    def __init__(self, current: Step, ask: Ask, grants: Grants) -> None:
        self._current = current
        self._exits = current.exits
        self._pools = ask.pools
        self._grants = grants
        self._left = ask.slots
        self._passings: list[Passing] = []
        self._held_up = HeldUp(self._exits, ask.pools)
        self.is_withheld = False

    def serve(self, limit: int, *, yields: bool) -> None:
        """Serve lanes in turn, the longest ready first. Where it yields, a host's other tasks
        have its turn as often as those of its lanes."""
        left = min(limit, self._left)
        if left <= 0:
            return
        self._exits.sweep()
        self._exits.save()
        lanes = self._ready()
        for seen, lane_id in enumerate(lanes):
            if left <= 0:
                break
            if seen % policy.TASKS_SEEN == 0:
                self._current.lanes.read(lanes[seen : seen + policy.TASKS_SEEN])
            lane = self._current.lanes.lane(lane_id)
            if lane.next_at > self._current.now or self._held_up.until(lane.pool) is not None:
                continue
            if self._pool_of(lane) not in self._pools:
                self.is_withheld = True  # For others, who know its exits.
                continue
            host = self._current.host(lane.host_id)
            if yields and host.waiting > 0 and random.getrandbits(1):
                continue
            left -= self._serve(lane, host, -(-left // (len(lanes) - seen)))

    def _ready(self) -> list[int]:
        current = self._current
        when = current.now, policy.LANES_SEEN
        found = [
            current.execute("ready_lanes", current.id, pool, *when).fetchall()
            for pool in pools_served(self._exits, self._pools)
            if self._held_up.until(pool) is None
        ]
        return [lane_id for _, lane_id in merge(*found)]

    def _serve(self, lane: LaneSchedule, host: HostSchedule, wanted: int) -> int:
        """Hand out tasks of a lane, or find out when it is to be looked at again."""
        current = self._current
        room = current.room(host)
        if host.next_at > current.now or not room:
            lane.next_at = max(host.next_at, current.now + (0 if room else policy.BUSY_WAIT_S))
            return 0
        count = min(1 if current.interval_of(host) else wanted, room)
        tasks = self._tasks(lane, max(count, policy.TASKS_SEEN))
        if not tasks:  # But for suspects, which go alone.
            lane.next_at = current.now + policy.BUSY_WAIT_S
            return 0
        given = self._lend(lane, host, tasks, count)
        if given:
            note_look(lane, self._exits.now, starved=False)
            lane.next_at = max(host.next_at, current.now)
        return given or self._put_off(lane, host, tasks, count)

    def _put_off(
        self, lane: LaneSchedule, host: HostSchedule, tasks: list[LaneTask], count: int
    ) -> int:
        self._held_up.look_again()
        if not put_off(self._current, lane, self._pool_of(lane)):
            return 0
        for task in tasks[:count]:
            self._hand_over(lane, host, task, None)
        return min(count, len(tasks))

    def serve_suspect(self, lane: LaneSchedule, task: LaneTask) -> bool:
        """Hand out one task alone, if its host may be hit and an exit be used."""
        current = self._current
        host = current.host(lane.host_id)
        if self._left <= 0 or host.next_at > current.now or not current.room(host):
            return False
        return self._lend(lane, host, [task], 1, alone=True) > 0

    def _tasks(self, lane: LaneSchedule, count: int) -> list[LaneTask]:
        rows = self._current.execute("lane_tasks", lane.queue_id, count).fetchall()
        return [LaneTask(*row) for row in rows]

    def _lend(
        self,
        lane: LaneSchedule,
        host: HostSchedule,
        tasks: list[LaneTask],
        count: int,
        *,
        alone: bool = False,
    ) -> int:
        """Hand out so many of these tasks, as far as there are exits for them."""
        given = 0
        choices: dict[str, list[Exit]] = {}
        most_tried = max(len(_read_tried(task.tried)) for task in tasks)
        while given < count and tasks:
            if not (found := self._match(lane, tasks, choices, count + most_tried)):
                break
            task, exit_ = found
            self._hand_over(lane, host, task, exit_, alone=alone)
            tasks.remove(task)
            given += 1
        return given

    def _match(
        self,
        lane: LaneSchedule,
        tasks: Sequence[LaneTask],
        choices: dict[str, list[Exit]],
        count: int,
    ) -> tuple[LaneTask, Exit] | None:
        """The first task for which there is an exit, and that exit."""
        for pool in self._pools_for(lane):
            if pool not in choices:
                choices[pool] = self._exits.usable(pool, lane.host, count)
            ordered = self._exits.ordered(choices[pool], lane.host)
            for task in tasks[: policy.TASKS_SEEN] if ordered else ():
                tried = _read_tried(task.tried)
                if len(tried) >= self._exits.listed[pool]:
                    tried = []
                for exit_ in ordered:
                    if exit_.id not in tried:
                        return task, exit_
        return None

    def _pools_for(self, lane: LaneSchedule) -> list[str]:
        """The pools whose exits the lane's next task may use: that of its tier, and before it the
        one below, if that is to be tried."""
        names = policy.tiers(lane.pool, self._exits.rules)
        tier = min(lane.state.tier, len(names) - 1)
        found = [self._pool_of(lane)]
        if tier > 0 and self._exits.now >= lane.state.probe_at:
            found.insert(0, names[tier - 1])
        return [pool for pool in dict.fromkeys(found) if self._may_use(pool)]

    def _may_use(self, pool: str) -> bool:
        is_known = pool in self._pools and pool in self._exits.rules
        return is_known and self._exits.may_spend(pool)

    def _pool_of(self, lane: LaneSchedule) -> str:
        """The pool of the lane's tier, or, where that may not spend, the first below that may."""
        names = policy.tiers(lane.pool, self._exits.rules)
        tier = min(lane.state.tier, len(names) - 1)
        for pool in names[tier::-1]:
            if pool in self._exits.rules and self._exits.may_spend(pool):
                return pool
        return names[tier]

    def _hand_over(
        self,
        lane: LaneSchedule,
        host: HostSchedule,
        task: LaneTask,
        exit_: Exit | None,
        *,
        alone: bool = False,
    ) -> None:
        exit_id, session, pool = "", 0, lane.pool
        if exit_ is not None:
            exit_id, session, pool = exit_.id, exit_.session, exit_.pool
            self._note_probe(lane, pool)
            self._exits.lend(exit_, lane.host)
        lease = self._grants.grant(host, task, lane, alone=alone)
        lease.paced |= exit_ is not None and self._exits.rules[pool].is_paced
        lease.lent = Lent(exit_id, session, pool, task.blocks, len(_read_tried(task.tried)))
        row = (task.id, exit_id, session, pool, self._exits.now, task.blocks, task.tried)
        self._passings.append(row)
        self._left -= 1

    def _note_probe(self, lane: LaneSchedule, pool: str) -> None:
        """One lease by the tier below is enough for a while."""
        names = policy.tiers(lane.pool, self._exits.rules)
        tier = min(lane.state.tier, len(names) - 1)
        if pool != names[tier] and self._exits.now >= lane.state.probe_at:
            lane.state.probe_at = self._exits.now + policy.PROBE_EVERY_S

    def write(self) -> None:
        """Write what was lent."""
        self._current.write("lend", self._passings)


class HeldUp:
    """Pools none of whose exits may be used now, though some only for a moment: their lanes need no
    look."""

    def __init__(self, exits: Exits, known: Sequence[str]) -> None:
        self._exits = exits
        self._known = frozenset(known)
        self._until: dict[str, float | None] = {}
        self._outlooks: dict[str, float | None] = {}
        self._as_of = exits.changes

    def look_again(self) -> None:
        """Exits may have been lent meanwhile."""
        if self._as_of != self._exits.changes:
            self._as_of = self._exits.changes
            self._until.clear()
            self._outlooks.clear()

    def until(self, pool: str) -> float | None:
        """How long the lanes of a pool need not be looked at, by the clock of the exits. None: they
        are to be looked at."""
        if pool not in self._until:
            self._until[pool] = self._earliest(policy.tiers(pool, self._exits.rules))
        return self._until[pool]

    def _earliest(self, names: Sequence[str]) -> float | None:
        """Of a pool and those that its tasks may go up to."""
        found = [self._of(name) for name in names if name in self._known]
        if not found or 0.0 in found:
            return None
        busy = [at for at in found if at is not None]
        return min(busy) if busy else None

    def _of(self, pool: str) -> float | None:
        """0 if an exit may be used, None if there is none that is merely busy, else when one may
        be."""
        if pool not in self._outlooks:
            self._outlooks[pool] = self._look(pool)
        return self._outlooks[pool]

    def _look(self, pool: str) -> float | None:
        exits = self._exits
        if exits.next_free(pool) <= exits.now:
            return 0.0
        outlook = exits.outlook(pool)
        if not outlook.busy:
            return None
        return outlook.again_at(exits.now)


def pools_served(exits: Exits, known: Sequence[str]) -> list[str]:
    """The pools whose lanes may use exits of those that a worker knows."""
    above = (name for name in exits.rules if set(policy.tiers(name, exits.rules)) & set(known))
    return list(dict.fromkeys([*known, *above]))


def next_look(current: Step, ask: Ask) -> float | None:
    """When a look at the lanes makes sense for this worker, by the clock of the crawl."""
    exits = current.exits
    held_up = HeldUp(exits, ask.pools)
    moments = []
    for pool in pools_served(exits, ask.pools):
        (at,) = current.execute("next_lane", current.id, pool).fetchone()
        if at is None:
            continue
        if at <= current.now and (until := held_up.until(pool)) is not None:
            at = current.by_crawl(until)
        moments.append(at)
    return min(moments, default=None)
