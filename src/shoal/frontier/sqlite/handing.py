"""Hands out tasks: moves them from WAITING to LEASED."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.core import task as wire
from shoal.core.exit_policy import BUSY_WAIT_S
from shoal.core.sharing import SHARE_WAIT_S
from shoal.core.urls import fingerprint_of
from shoal.frontier.facts import SUSPECTS_SEEN, WITHHELD_SEEN
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.jars import jar_of
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.lease import allowed, reclaim, wait_s
from shoal.frontier.sqlite.lending import LaneTask, Lending
from shoal.frontier.sqlite.queued import Queued
from shoal.frontier.sqlite.sharing import Sharing
from shoal.frontier.sqlite.step import Step
from shoal.frontier.values import Ask, CrawlState, Grant, Lease

Granted = tuple[int, Lease, float]
"""The row of a task, its lease, and the next turn of its host after this lease."""


_read_queued = msgspec.json.Decoder(list[Queued]).decode


def hand_out(current: Step, ask: Ask) -> HandOut:
    """Take back what is due, then hand out what may be sent now."""
    if current.state is CrawlState.RUNNING:
        reclaim(current)
    answer = HandOut(current, ask)
    answer.serve()
    return answer


class HandOut:
    """Builds the answer to one ask."""

    def __init__(self, current: Step, ask: Ask) -> None:
        self._current = current
        self._ask = ask
        self._sharing = Sharing(current, ask)
        self._granted: list[Granted] = []
        self._written = 0
        self._is_withheld = False  # Whether a host gave nothing because others have its room.
        self._lending = Lending(current, ask, self) if ask.pools and ask.slots > 0 else None

    def serve(self) -> None:
        """Choose tasks for the worker, and lease them to it."""
        limit = max(allowed(self._current, self._ask.room), 0)
        if self._ask.holdings:
            self._sharing.settle_all(self._ask, limit)
        if limit:
            self._serve_all(limit)
            if self._ask.holdings:
                self._sharing.leave_idle({lease.task.site for _, lease, _ in self._granted})
            if not self._granted:
                self._serve_suspect()
        self._write()

    def answer(self) -> Grant:
        """The answer to the worker. Call it when the step has been written."""
        current = self._current
        again_s = wait_s(current, self._ask)
        if self._is_withheld and not self._granted and again_s is not None:
            again_s = max(again_s, SHARE_WAIT_S)
        if self._lending is not None and self._lending.is_withheld and not self._granted:
            again_s = max(again_s or 0.0, BUSY_WAIT_S)
        leases = [lease for _, lease, _ in self._granted]
        return Grant(
            current.state,
            leases,
            self._sharing.shares,
            again_s,
            current.count("waiting") > 0,
            current.id,
            current.begun,
        )

    def _serve_all(self, limit: int) -> None:
        """Serve hosts and lanes, so that neither keeps the other from its turn: lanes get up to
        half, then hosts what they can use, then lanes the rest."""
        if self._lending is None:
            self._serve_ready(limit)
            return
        self._lending.serve((limit + random.getrandbits(1)) // 2, yields=True)
        if len(self._granted) < limit:
            self._serve_ready(limit)
        self._write()
        self._lending.serve(limit - len(self._granted), yields=False)

    def _serve_ready(self, limit: int) -> None:
        """Serve the ready hosts in turn. A host without a rate may give several tasks at once."""
        seen, before = 0, len(self._granted)
        while seen < WITHHELD_SEEN and len(self._granted) == before:
            when = (self._current.id, self._current.now)
            ready = self._current.execute("ready_hosts", *when, limit, seen).fetchall()
            self._serve_hosts([host_id for (host_id,) in ready], limit)
            seen += len(ready)
            if len(ready) < limit:
                return

    def _serve_hosts(self, host_ids: Sequence[int], limit: int) -> None:
        self._current.read_hosts(host_ids)
        for served, host_id in enumerate(host_ids):
            wanted = -(-(limit - len(self._granted)) // (len(host_ids) - served))
            host = self._current.host(host_id)
            if host.next_at > self._current.now:
                continue  # One of its lanes took its turn.
            room = self._current.room(host)
            if self._sharing.takes_part(host, wanted, room):
                self._serve_shared(host, wanted)
            else:
                self._serve_plain(host, wanted, room)

    def _serve_shared(self, host: HostSchedule, wanted: int) -> None:
        tasks = self._best(host, min(wanted, self._sharing.ahead(host)))
        self._grant(host, tasks, shared=True)
        if tasks:
            site = self._granted[-1][1].task.site
            self._sharing.shares[site] = self._sharing.told(host)
        else:
            self._withhold(host)

    def _serve_plain(self, host: HostSchedule, wanted: int, room: int) -> None:
        count = min(1 if self._current.interval_of(host) else wanted, room)
        self._grant(host, self._best(host, count))
        if not room:
            self._withhold(host)

    def _withhold(self, host: HostSchedule) -> None:
        self._is_withheld = True
        host.next_at = self._current.now  # Other hosts go first next time.

    def _best(self, host: HostSchedule, count: int) -> list[Queued]:
        if count <= 0:
            return []
        (found,) = self._current.execute("best_tasks", host.id, count).fetchone()
        return _read_queued(found)

    def _serve_suspect(self) -> None:
        """Lease one task with which workers died, to a worker that has nothing else to lose."""
        current = self._current
        suspects = current.execute("suspects", current.id, SUSPECTS_SEEN).fetchall()
        if not suspects or current.execute("holds_any", current.id, self._ask.worker).fetchone()[0]:
            return
        for host_id, *row in suspects:
            if host_id < 0:
                if self._lend_suspect(current.lanes.lane(-host_id), row):
                    return
                continue
            host = current.host(host_id)
            if host.next_at <= current.now and current.room(host):
                self._grant(host, [Queued(*row)], alone=True)
                return

    def _lend_suspect(self, lane: LaneSchedule, row: Sequence[Any]) -> bool:
        if self._lending is None:
            return False
        task_id = row[0]
        blocked = self._current.execute("blocks_of", task_id).fetchone() or ()
        return self._lending.serve_suspect(lane, LaneTask(*row, *blocked))

    def grant(
        self, host: HostSchedule, task: Queued, lane: LaneSchedule, *, alone: bool = False
    ) -> Lease:
        """Lease a task of a lane."""
        self._grant(host, [task], alone=alone, line=lane)
        return self._granted[-1][1]

    def _grant(
        self,
        host: HostSchedule,
        tasks: Sequence[Queued],
        *,
        alone: bool = False,
        shared: bool = False,
        line: LaneSchedule | None = None,
    ) -> None:
        if not tasks:
            return
        current = self._current
        interval_s = current.interval_of(host)
        host.next_at = current.now + interval_s
        robots_at = host.robots_at if host.knows_robots(current.now) else None
        (line or host).waiting -= len(tasks)
        host.leased += len(tasks)
        host.shared += len(tasks) if shared else 0
        crowded = not shared and current.room(host) == 0
        how = (interval_s > 0, alone, crowded, shared, current.now - current.begun)
        for queued in tasks:
            task = wire.decode(bytes.fromhex(queued.payload))
            task.retry_count = queued.attempts
            key = fingerprint_of(queued.fingerprint)
            lease = Lease(key, secrets.token_hex(8), task, robots_at, *how)
            if current.keeps_cookies and task.chain is not None:
                lease.cookies = jar_of(current, task.chain)
            self._granted.append((queued.id, lease, host.next_at))
        current.tally.update(waiting=-len(tasks), leased=len(tasks))

    def _write(self) -> None:
        current = self._current
        rows = [
            (row_id, lease.token, reserved, lease.shared)
            for row_id, lease, reserved in self._granted[self._written :]
        ]
        self._written = len(self._granted)
        due = current.now + current.rules.lease_s
        current.write("lease_tasks", rows, due, self._ask.worker, current.now)
        if self._lending is not None:
            self._lending.write()
