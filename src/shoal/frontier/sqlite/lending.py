"""Hands out the tasks of lanes, each with an exit or an account that may be used at its host."""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import merge
from typing import Protocol

import msgspec

from shoal.core import exit_policy as policy
from shoal.core.exits import Exit, Lent
from shoal.core.identities import group_of, is_group
from shoal.frontier.sqlite.account_lending import Chooser, Chosen
from shoal.frontier.sqlite.held_up import HeldUp, of_accounts, pools_known, pools_served
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.queued import Queued
from shoal.frontier.sqlite.starving import note_look, put_off
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.sqlite.step import Step
from shoal.frontier.sqlite.taking_back import sweep
from shoal.frontier.values import Ask, Lease

_read_tried = msgspec.json.Decoder(list[str]).decode

PassageRow = tuple[int, str, int, str, float, int, str, str, int]
"""A row of the table `passages`."""


class LaneTask(Queued):
    """A task that waits in a lane: a row of the query `lane_tasks`, in its column order."""

    blocks: int = 0
    tried: str = "[]"
    expired: int = 0


class Grants(Protocol):
    """Collects the leases of a step."""

    def grant(
        self, host: HostSchedule, task: Queued, lane: LaneSchedule, *, alone: bool = False
    ) -> Lease: ...


class Lending:
    """Serves lanes for one ask."""

    def __init__(self, current: Step, ask: Ask, grants: Grants) -> None:
        self._current = current
        self._exits = current.exits
        self._worker = ask.worker
        self._pools = pools_known(self._exits, ask)
        self._grants = grants
        self._left = ask.slots
        self._passages: list[PassageRow] = []
        self._held_up = HeldUp(self._exits, self._pools, ask.worker)
        self._chooser = Chooser(self._exits, ask.worker)
        self._served: set[int] = set()
        self.is_withheld = False

    def serve(self, limit: int, *, yields: bool) -> None:
        """Serve lanes in turn, the longest ready first.

        If `yields`, half of a host's turns are left to its other tasks.
        """
        left = min(limit, self._left)
        if left <= 0:
            return
        sweep(self._exits)
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
            if not lane.waiting:
                continue  # Emptied in this step. Tasks added now need not wait for `next_at`.
            if self._pool_of(lane) not in self._pools:
                self.is_withheld = True  # Left to workers that know its exits.
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
        for group in filter(is_group, self._pools):
            values = of_accounts(current, group, self._worker) | {"limit": policy.LANES_SEEN}
            found.append(
                current.connection.execute(SQL["ready_lanes_of_accounts"], values).fetchall()
            )
        return [lane_id for _, lane_id in merge(*found)]

    def _serve(self, lane: LaneSchedule, host: HostSchedule, wanted: int) -> int:
        """Hand out tasks of a lane, or find out when it has to be looked at again."""
        current = self._current
        if (at := self._turn_of(host)) > current.now:
            lane.next_at = at
            return 0
        count = min(1 if current.interval_of(host) else wanted, current.room(host))
        tasks = self._tasks(lane, max(count, policy.TASKS_SEEN))
        if not tasks:  # Only suspects wait, and these go alone.
            lane.next_at = current.now + policy.BUSY_WAIT_S
            return 0
        given = self._lend(lane, host, tasks, count)
        if given:
            self._served.add(lane.id)
            note_look(lane, self._exits.now, starved=False)
        elif lane.id not in self._served:  # If it is, the next ask finds out what the rest need.
            given = self._put_off(lane, host, tasks, count)
        if given:
            lane.next_at = self._turn_of(host)
        return given

    def _turn_of(self, host: HostSchedule) -> float:
        """When to look at a host's lanes again, as far as that depends on the host."""
        wait_s = 0.0 if self._current.room(host) else policy.BUSY_WAIT_S
        return max(host.next_at, self._current.now + wait_s)

    def _put_off(
        self, lane: LaneSchedule, host: HostSchedule, tasks: list[LaneTask], count: int
    ) -> int:
        if not self._may_leave(lane):
            return 0
        for task in tasks[:count]:
            self._hand_over(lane, host, task, None)
        return min(count, len(tasks))

    def _may_leave(self, lane: LaneSchedule, suspect: LaneTask | None = None) -> bool:
        """Whether tasks of a lane, for which nothing could be used, may leave without an exit. If
        not, the lane is put off."""
        self._held_up.look_again()
        if self._held_up.until(lane.pool) is not None:
            # Only other requests are in the way: the lane keeps its place, ahead of served ones.
            note_look(lane, self._exits.now, starved=False)
            return False
        only = None if suspect is None else suspect.id
        return put_off(self._current, lane, self._pool_of(lane), self._worker, only)

    def serve_suspect(self, lane: LaneSchedule, task: LaneTask) -> bool:
        """Hand out one task alone, if its host may be hit and an exit may be used."""
        current = self._current
        host = current.host(lane.host_id)
        if self._left <= 0 or host.next_at > current.now or not current.room(host):
            return False
        if self._pool_of(lane) not in self._pools:
            return False  # Left to workers that know its exits.
        if self._lend(lane, host, [task], 1, alone=True):
            note_look(lane, self._exits.now, starved=False)
            return True
        if not self._may_leave(lane, task):
            return False
        self._hand_over(lane, host, task, None, alone=True)
        return True

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
        """Hand out up to `count` of these tasks, as far as there are exits. Returns how many."""
        if is_group(lane.pool):
            return self._lend_accounts(lane, host, tasks, count, alone=alone)
        given = 0
        choices: dict[str, list[Exit]] = {}
        most_tried = max(len(_read_tried(task.tried)) for task in tasks)
        while given < count and tasks:
            if not (found := self._match(lane, tasks, choices, count + most_tried)):
                break
            task, exit_ = found
            self._note_probe(lane, exit_.pool)
            self._hand_over(lane, host, task, exit_, alone=alone)
            tasks.remove(task)
            given += 1
        return given

    def _lend_accounts(
        self,
        lane: LaneSchedule,
        host: HostSchedule,
        tasks: list[LaneTask],
        count: int,
        *,
        alone: bool,
    ) -> int:
        """Hand out up to `count` of these tasks, as far as there are accounts. Any suits any
        task."""
        choice = self._chooser.choice(lane.pool, lane.host, count)
        for given, task in enumerate(tasks[:count]):
            if (chosen := choice.take()) is None:
                return given
            self._hand_over(lane, host, task, chosen.through, chosen, alone=alone)
        return min(count, len(tasks))

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
        """The pools whose exits the lane's next task may use: that of its tier, preceded by the one
        below if that is due for a probe."""
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
        """The pool of the lane's tier. If that may not spend, the first one below it that may."""
        if is_group(lane.pool):
            return group_of(lane.pool)
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
        chosen: Chosen | None = None,
        *,
        alone: bool = False,
    ) -> None:
        exit_id, session, pool = "", 0, lane.pool
        if exit_ is not None:
            exit_id, session, pool = exit_.id, exit_.session, exit_.pool
            self._exits.lend(exit_, lane.host)
        lease = self._grants.grant(host, task, lane, alone=alone)
        lease.paced |= exit_ is not None and self._exits.rules[pool].is_paced
        if chosen is None or exit_ is not None:
            lease.lent = Lent(exit_id, session, pool, task.blocks, len(_read_tried(task.tried)))
        if chosen is not None:
            lease.identity = chosen.identity(self._exits.accounts, task.expired)
        lent = (task.id, exit_id, session, pool, self._exits.now)
        account = "" if chosen is None else chosen.account.id
        self._passages.append((*lent, task.blocks, task.tried, account, task.expired))
        self._left -= 1

    def _note_probe(self, lane: LaneSchedule, pool: str) -> None:
        """Schedule the next probe. One lease from the tier below is enough for a while."""
        names = policy.tiers(lane.pool, self._exits.rules)
        tier = min(lane.state.tier, len(names) - 1)
        if pool != names[tier] and self._exits.now >= lane.state.probe_at:
            lane.state.probe_at = self._exits.now + policy.PROBE_EVERY_S

    def write(self) -> None:
        """Store what was lent."""
        self._current.write("lend", self._passages)
