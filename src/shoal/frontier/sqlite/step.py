"""One atomic step on one crawl in SQLite: what it has read, and what it will write when it ends."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec.structs import astuple

from shoal.config import read_rules
from shoal.core.counters import COUNTERS
from shoal.core.policy import AUTO_START_S, SEND_SLACK_S, parse_rate
from shoal.core.urls import number_of
from shoal.drivers.sqlite import newer_file, transaction, write_rows
from shoal.errors import UnknownCrawl
from shoal.frontier.clock import JUMP_S, Moment, moment
from shoal.frontier.facts import SAMPLE_EVERY_S, recent_rate
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.failures import WHOLE_CRAWL, Failures, failures_of
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.lanes import Lanes, LaneSchedule
from shoal.frontier.sqlite.own_counts import own_counts_of
from shoal.frontier.sqlite.shares import Shares
from shoal.frontier.sqlite.statements import HELD_BACK, PART, SCHEMA, SQL
from shoal.frontier.sqlite.taking_back import take_back_all
from shoal.frontier.values import CrawlState, Lease, Stats

_NOTHING = dict.fromkeys((*COUNTERS, "places"), 0)
Clock = Callable[[], float]


class Step:
    """A transaction on one crawl. Changes to counters and hosts are collected and written once."""

    def __init__(self, connection: sqlite3.Connection, row: dict[str, Any], clock: Clock) -> None:
        self.connection = connection
        self.row = row
        self.id: int = row["id"]
        # Read before the clock: a request within the slack after it is also in time by the clock.
        self.begun = time.monotonic()
        self.clock = moment_of(row, clock)
        self.now = self.clock.now
        self.state = CrawlState(row["state"])
        self.rules = read_rules(row["rules"])
        self.rate = parse_rate(self.rules.rate)
        self.keeps_cookies = self.rules.cookies != "off"
        self.tally: Counter[str] = Counter()
        self.failures = Failures()
        self.shares = Shares(connection, self.now)
        self._hosts: dict[int, HostSchedule] = {}
        self._lanes: Lanes | None = None
        self._exits: Exits | None = None
        self._touched_chains: dict[str, None] = {}

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        """Run a named query."""
        return self.connection.execute(SQL[query], values)

    def write(self, query: str, rows: Sequence[Sequence[Any]], *others: Any) -> None:
        """Run a named query for many rows."""
        write_rows(self.connection, SQL[query], rows, *others)

    def host(self, host_id: int) -> HostSchedule:
        """The schedule of a host. Changes to it are written at the end of the step."""
        if host_id not in self._hosts:
            self.read_hosts([host_id])
        return self._hosts[host_id]

    def read_hosts(self, host_ids: Iterable[int]) -> None:
        """Read the schedules of hosts that are needed soon."""
        if unread := set(host_ids) - self._hosts.keys():
            for row in self.execute("hosts", as_json(unread)).fetchall():
                self._hosts[row[0]] = HostSchedule(*row)

    @property
    def lanes(self) -> Lanes:
        """The lanes of the crawl, created on first use: many crawls have none."""
        if self._lanes is None:
            self._lanes = Lanes(self.connection, self.id)
        return self._lanes

    @property
    def exits(self) -> Exits:
        """The exits of all crawls, with their own clock."""
        if self._exits is None:
            self._exits = Exits(self.connection, self.clock.by_machine)
        return self._exits

    def by_crawl(self, at: float) -> float:
        """A time of the exits' clock, by the clock of the crawl."""
        return at - self.exits.now + self.now

    def queue_of(self, queue_id: int) -> HostSchedule | LaneSchedule:
        """The queue in which a task waits: its host, or its lane, whose number is negative."""
        return self.host(queue_id) if queue_id > 0 else self.lanes.lane(-queue_id)

    def host_of(self, queue_id: int) -> HostSchedule:
        """The host of a task, wherever the task waits."""
        return self.host(queue_id if queue_id > 0 else self.lanes.lane(-queue_id).host_id)

    def hosts_named(self, names: Iterable[str]) -> dict[str, HostSchedule]:
        """The schedules of these hosts. New ones are created."""
        unique = dict.fromkeys(names)  # Keeps the order: new hosts have their turns in it.
        self.write("add_hosts", [(self.id, name) for name in unique])
        return self.known_hosts(unique)

    def known_hosts(self, names: Iterable[str]) -> dict[str, HostSchedule]:
        """The schedules of those hosts that exist."""
        found = self.execute("hosts_named", self.id, as_json(names)).fetchall()
        return {name: self._hosts.setdefault(row[0], HostSchedule(*row)) for name, *row in found}

    def interval_of(self, host: HostSchedule) -> float:
        """The time between two requests to this host: the longest of all that apply."""
        crawl_delay_s = host.crawl_delay_s + SEND_SLACK_S if host.crawl_delay_s else 0.0
        own_s = host.penalty_s or (AUTO_START_S if self.rate.auto else 0.0)
        return max(self.rate.interval_s, crawl_delay_s, own_s)

    def room(self, host: HostSchedule) -> int:
        """How many more leases that take room the host may give."""
        shares = self.shares.taken(host) if host.sharers else 0
        return max(host.limit(self.rules, self.now) - host.plain - shares, 0)

    def may_share(self, host: HostSchedule) -> bool:
        """Whether workers may share the host's room: not if each request has its own turn."""
        return not self.interval_of(host) and host.is_open(self.rules, self.now)

    def _ready_at(self, host: HostSchedule) -> float | None:
        """The host's place in the heap. None while it has no work, or no room, unless the workers
        that have the room can be told to share it."""
        if host.waiting <= 0:
            return None
        if self.room(host) or self.may_share(host):
            return host.next_at
        if host.plain >= host.limit(self.rules, self.now):
            return None
        return max(host.next_at, self.shares.next_void(host))

    def next_place(self) -> int:
        """The place behind all tasks that wait now."""
        self.tally["places"] += 1
        return self.count("places")

    def count(self, name: str) -> int:
        """A counter of the crawl as it will be at the end of this step."""
        return int(self.row[name]) + self.tally[name]

    def cancel(self) -> None:
        """Cancel the crawl: drop all tasks that have not ended, and void their leases."""
        self.save_hosts()
        take_back_all(self.exits, self.id)
        self.execute("drop_unended", self.id)
        self.execute("forget_shares", self.id)
        self.execute("forget_jars", self.id)
        self.execute("idle_hosts", self.id)
        self.execute("idle_lanes", self.id)
        self.lanes.clear()
        for name in ("waiting", "delayed", "leased"):
            self.tally["dropped"] += self.count(name)
            self.tally[name] -= self.count(name)
        self.set_state(CrawlState.CANCELLED)

    def touch_chain(self, chain: str | None) -> None:
        """Note that a task has joined its chain or has ended, so the chain may have to advance."""
        if chain is not None:
            self._touched_chains[chain] = None

    def advance_chains(self) -> None:
        """Free the next task of each touched chain, unless one of the chain is under way."""
        for chain in self._touched_chains:
            head = self.execute("head_of_chain", self.id, chain).fetchone()
            if head is None and self.keeps_cookies:
                self.execute("delete_jar", self.id, chain)
            elif head and head[2] == HELD_BACK:
                row_id, host_id, _ = head
                self.execute("free_task", self.next_place(), row_id)
                self.queue_of(host_id).waiting += 1
        self._touched_chains.clear()

    def settle(self) -> None:
        """Apply the consequences of all moves so far: advance chains, end the crawl if done."""
        self.advance_chains()
        self._finish_if_done()

    def close(self) -> None:
        """Write hosts, counters and, if nothing is left to do, the end of the crawl."""
        self.advance_chains()
        self.save_hosts()
        if self._exits is not None:
            self._exits.save()
        self.failures.save(self.connection, self.id)
        is_later = self.now >= self.row["latest"] + JUMP_S
        if any(self.tally.values()) or self.has_jumped or is_later:
            moments = {"now": self.now, "ahead": self.clock.ahead}
            values = {**_NOTHING, **self.tally, **moments, "id": self.id}
            self.connection.execute(SQL["count"], values)
        moved = self.tally["done"] + self.tally["dead"] > 0
        if moved and self.now - self.row["sample_at"] >= SAMPLE_EVERY_S:
            self.execute("sample", self.now, self.pages_tried(), self.id)
        self._finish_if_done()

    @property
    def has_jumped(self) -> bool:
        """Whether the machine's clock was set back, and that is not stored yet."""
        return bool(self.clock.ahead != self.row["ahead"])

    def set_state(self, state: CrawlState) -> None:
        """Change the state of the crawl."""
        self.state = state
        self.execute("set_state", state, self.clock.by_machine if state.over else None, self.id)

    def seal(self) -> None:
        """Note that all seeds are in."""
        self.row["sealed"] = 1
        self.execute("seal", self.id)

    def _finish_if_done(self) -> None:
        may_end = self.state.live and self.row["sealed"] and self.count("leased") == 0
        if may_end and self._nothing_to_do():
            self.set_state(CrawlState.FINISHED)

    def pages_tried(self) -> int:
        """See `Stats.tried`."""
        return self.count("done") + self.count("dead")

    def _nothing_to_do(self) -> bool:
        limit = self.rules.max_pages
        full = limit is not None and self.pages_tried() >= limit
        return full or self.count("waiting") + self.count("delayed") == 0

    def save_hosts(self) -> None:
        """Write the hosts back, with their places in the heap."""
        hosts = self._hosts.values()
        # Before the rows: finding its place may remove void shares of a host, and change its row.
        ready = [self._ready_at(host) for host in hosts]
        rows = [(*astuple(host), at) for host, at in zip(hosts, ready, strict=True)]
        self.write("save_hosts", rows)
        self._hosts.clear()
        if self._lanes is not None:
            self._lanes.save()


def name_of(lease: Lease) -> tuple[int, str]:
    """The columns that must match for a lease to own its task."""
    return number_of(lease.fingerprint), lease.token


def as_json(values: Iterable[Any]) -> str:
    """Several values as one parameter of a statement."""
    return msgspec.json.encode(list(values)).decode()


@contextmanager
def step(connection: sqlite3.Connection, crawl: str, clock: Clock) -> Iterator[Step]:
    """A step on an existing crawl. It is written as a whole or not at all.

    The clock is read once the write lock is held: time spent waiting for it must not let two
    requests to a host come closer than they may.
    """
    with transaction(connection):
        current = Step(connection, crawl_row(connection, crawl), clock)
        yield current
        current.close()


def moment_of(row: dict[str, Any], clock: Clock) -> Moment:
    """The present moment by the clock of a crawl."""
    return moment(clock(), row["latest"], row["ahead"])


def crawl_row(connection: sqlite3.Connection, crawl: str) -> dict[str, Any]:
    """The row of a crawl. Raises UnknownCrawl.

    Raises NewerFormat if a later version has upgraded the file since it was opened.
    """
    cursor = connection.execute(SQL["crawl"], (crawl,))
    row = cursor.fetchone()
    if row is None:
        raise UnknownCrawl(crawl)
    return _named(cursor, row)


def all_rows(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """The rows of all crawls, the newest first."""
    cursor = connection.execute(SQL["crawls"])
    return [_named(cursor, row) for row in cursor.fetchall()]


def stats_of(connection: sqlite3.Connection, row: dict[str, Any], clock: Clock) -> Stats:
    """The statistics of a crawl, from its row."""
    failures = failures_of(connection, row["id"], [WHOLE_CRAWL])
    times = {name: row[name] for name in ("created_at", "started_at", "finished_at")}
    return Stats(
        crawl=row["name"],
        state=CrawlState(row["state"]),
        rules=read_rules(row["rules"]),
        pages_per_s=_recent_rate(row, moment_of(row, clock)),
        failures_by_kind=failures[WHOLE_CRAWL],
        own_counts=own_counts_of(connection, row["id"]),
        **times,
        **{name: row[name] for name in COUNTERS},
    )


def _recent_rate(row: dict[str, Any], at: Moment) -> float:
    until = row["finished_at"] + at.ahead if row["finished_at"] else at.now
    earlier = row["earlier_at"], row["earlier_done"]
    return recent_rate(row["done"] + row["dead"], until, row["started_at"], earlier)


def _named(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    named = dict(zip((column[0] for column in cursor.description), row, strict=True))
    if (version := named["file_version"]) > len(SCHEMA):
        _, _, path = cursor.connection.execute("PRAGMA database_list").fetchone()
        raise newer_file(path, PART, version, len(SCHEMA))
    return named
