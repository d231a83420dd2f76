"""Lanes, as a step reads and changes them: a host's tasks that leave through exits of one pool."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.core.exits import Lane
from shoal.drivers.sqlite import write_rows
from shoal.frontier.sqlite.statements import SQL

_read_lane = msgspec.json.Decoder(Lane).decode
_as_json = msgspec.json.encode


class LaneSchedule(msgspec.Struct):
    """A row of the table `lanes`, with the name of its host."""

    id: int
    host_id: int
    host: str
    pool: str
    waiting: int
    next_at: float
    """When to look at it next, by the clock of the crawl."""
    state: Lane
    """Its times are by the clock of the exits."""

    @property
    def queue_id(self) -> int:
        """The number that its tasks have in place of the host's."""
        return -self.id


class Lanes:
    """The lanes of one crawl in a step. Those that were read are written back by `save`."""

    def __init__(self, connection: sqlite3.Connection, crawl_id: int) -> None:
        self._connection = connection
        self._crawl_id = crawl_id
        self._read: dict[int, LaneSchedule] = {}

    def lane(self, lane_id: int) -> LaneSchedule:
        """One lane, by its id."""
        if lane_id not in self._read:
            self.read([lane_id])
        return self._read[lane_id]

    def read(self, lane_ids: Iterable[int]) -> None:
        """Read lanes that are needed soon."""
        if unread := [lane_id for lane_id in lane_ids if lane_id not in self._read]:
            self._keep("lanes", unread)

    def named(self, names: Iterable[tuple[int, str]]) -> dict[tuple[int, str], LaneSchedule]:
        """The lanes of these hosts and pools. Missing ones are created."""
        unique = dict.fromkeys(names)
        rows = [(self._crawl_id, host_id, pool) for host_id, pool in unique]
        write_rows(self._connection, SQL["add_lanes"], rows)
        self._keep("lanes_of_hosts", list({host_id for host_id, _ in unique}))
        return {(lane.host_id, lane.pool): lane for lane in self._read.values()}

    def _keep(self, query: str, ids: list[int]) -> None:
        for row in self._connection.execute(SQL[query], (_as_json(ids).decode(),)):
            self._read.setdefault(row[0], lane_of(row))

    def save(self) -> None:
        """Write all of them back."""
        rows = [
            (
                lane.id,
                lane.waiting,
                lane.next_at,
                lane.next_at if lane.waiting > 0 else None,
                _as_json(lane.state).decode(),
            )
            for lane in self._read.values()
        ]
        write_rows(self._connection, SQL["save_lanes"], rows)

    def clear(self) -> None:
        """Forget what was read, after a statement has changed the table."""
        self._read.clear()


def lane_of(row: tuple[Any, ...]) -> LaneSchedule:
    """A lane from its row."""
    lane_id, host_id, host, pool, waiting, next_at, body = row
    return LaneSchedule(lane_id, host_id, host, pool, waiting, next_at, _read_lane(body))
