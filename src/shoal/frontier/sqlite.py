"""The embedded frontier: one SQLite file, shared by all processes of one machine."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from shoal import task as wire
from shoal.config import Rules
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.port import (
    Added,
    Control,
    CrawlState,
    Entry,
    Frontier,
    Grant,
    Host,
    Lease,
    Outcome,
    Record,
    Robots,
    Stats,
    TaskState,
    Verdict,
)
from shoal.frontier.sqlite_step import (
    DEAD,
    DELAYED,
    DONE,
    DROPPED,
    SQL,
    WAITING,
    Clock,
    Schedule,
    Step,
    all_rows,
    crawl_row,
    stats_of,
    step,
)
from shoal.policy import after_pushback, after_success, loss_wait_s
from shoal.sqlitedb import Database, load_script, transaction
from shoal.task import Task

RECLAIM_BATCH = 500
POISON = "poison: {} workers died with it"
CANCELLED = "crawl '{}' was cancelled; --fresh starts it over"

_STATES = tuple(TaskState)
_encode_json = msgspec.json.encode
_read_robots = msgspec.json.Decoder(Robots).decode


class SqliteFrontier(Frontier):
    """Everything the port promises, on one file. Each method is one transaction."""

    def __init__(self, path: Path, clock: Clock = time.time) -> None:
        schema = load_script("shoal.frontier", "schema.sql")
        # A power cut may undo the last steps, in order: work is then done again, never lost.
        self._db = Database(path, schema, durable=False)
        self._clock = clock

    # Bringing work

    async def start(self, crawl: str, rules: Rules) -> Stats:
        return await self._db.run(partial(self._start, crawl=crawl, rules=rules))

    def _start(self, connection: sqlite3.Connection, crawl: str, rules: Rules) -> Stats:
        with transaction(connection):
            now = self._clock()
            row = self._row_or_new(connection, crawl, rules)
            state = CrawlState(row["state"])
            if state is CrawlState.CANCELLED:
                raise ConfigError(CANCELLED.format(crawl))
            sealed = state in (CrawlState.RUNNING, CrawlState.PAUSED) and row["sealed"]
            state = CrawlState.PAUSED if state is CrawlState.PAUSED else CrawlState.RUNNING
            values = (state, _encode_json(rules).decode(), sealed, now, row["id"])
            connection.execute(SQL["start_crawl"], values)
            return stats_of(crawl_row(connection, crawl), now)

    def _row_or_new(
        self, connection: sqlite3.Connection, crawl: str, rules: Rules
    ) -> dict[str, Any]:
        try:
            return crawl_row(connection, crawl)
        except UnknownCrawl:
            values = (crawl, _encode_json(rules).decode(), self._clock())
            connection.execute(SQL["create_crawl"], values)
            return crawl_row(connection, crawl)

    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        return await self._db.run(partial(self._add, crawl=crawl, entries=entries))

    def _add(self, connection: sqlite3.Connection, crawl: str, entries: Sequence[Entry]) -> Added:
        with transaction(connection):
            current = Step(connection, self._row_or_new(connection, crawl, Rules()), self._clock)
            if current.state is CrawlState.CANCELLED:
                raise ConfigError(CANCELLED.format(crawl))
            added = self._queue(current, entries)
            if current.state is CrawlState.FINISHED and added.added:
                current.set_state(CrawlState.RUNNING)
            current.close()
        return added

    def _queue(self, current: Step, entries: Sequence[Entry]) -> Added:
        """Queue what was never seen. Of the same task twice, the first counts."""
        if not entries:
            return Added()
        found: dict[int, Task] = {}
        for entry in entries:
            found.setdefault(_as_int(entry.fingerprint), entry.task)
        for (fingerprint,) in current.execute("seen", current.id, _as_json(found)).fetchall():
            del found[fingerprint]
        rows = []
        for fingerprint, task in found.items():
            host = current.host_named(task.site)
            host.waiting += 1
            rows.append((current.id, fingerprint, host.id, task.priority, wire.encode(task)))
        current.connection.executemany(SQL["add_task"], rows)
        added = Added(len(rows), len(entries) - len(rows))
        current.tally.update(added=added.added, waiting=added.added, duplicates=added.duplicates)
        return added

    # Working

    async def lease(self, crawl: str, worker: str, limit: int) -> Grant:
        return await self._db.run(partial(self._lease, crawl=crawl, worker=worker, limit=limit))

    def _lease(self, connection: sqlite3.Connection, crawl: str, worker: str, limit: int) -> Grant:
        idle = self._nothing_to_lease(connection, crawl)
        if idle is not None:
            return idle
        with step(connection, crawl, self._clock) as current:
            self._reclaim(current)
            leases = self._hand_out(current, worker, self._allowed(current, limit))
        return Grant(current.state, leases, self._wait_s(current), current.id, current.begun)

    def _nothing_to_lease(self, connection: sqlite3.Connection, crawl: str) -> Grant | None:
        """A look before the write lock is asked for: idle workers must not hinder busy ones."""
        current = Step(connection, crawl_row(connection, crawl), self._clock)
        if current.state is not CrawlState.RUNNING:
            return Grant(current.state)
        wait_s = self._wait_s(current)
        return None if wait_s == 0.0 else Grant(current.state, [], wait_s)

    def _wait_s(self, current: Step) -> float | None:
        moments = [current.execute("next_due", current.id).fetchone()[0]]
        if self._allowed(current, 1) > 0:
            moments.append(current.execute("next_ready", current.id).fetchone()[0])
        known = [moment for moment in moments if moment is not None]
        return max(min(known) - current.now, 0.0) if known else None

    def _allowed(self, current: Step, limit: int) -> int:
        if current.state is not CrawlState.RUNNING:
            return 0
        if current.rules.max_pages is None:
            return limit
        return min(limit, current.rules.max_pages - current.count("done") - current.count("leased"))

    def _hand_out(self, current: Step, worker: str, limit: int) -> list[Lease]:
        """Serve the ready hosts in turn; a host without a rate may give several at once."""
        leases: list[Lease] = []
        if limit <= 0:
            return leases
        ready = current.execute("ready_hosts", current.id, current.now, limit).fetchall()
        for served, (host_id,) in enumerate(ready):
            host = current.host(host_id)
            share = -(-(limit - len(leases)) // (len(ready) - served))
            leases += self._serve(current, host, worker, share)
        return leases

    def _serve(self, current: Step, host: Schedule, worker: str, share: int) -> list[Lease]:
        interval_s = current.interval_of(host)
        count = min(1 if interval_s else share, host.room(current.rules, current.now))
        rows = current.execute("best_tasks", host.id, count).fetchall() if count else []
        if not rows:
            return []
        due = current.now + current.rules.lease_s
        robots_at = host.robots_at if host.knows_robots(current.now) else None
        leases, updates = [], []
        for row_id, fingerprint, attempts, payload in rows:
            task = wire.decode(payload)
            task.retry_count = attempts
            token = secrets.token_hex(8)
            key = fingerprint.to_bytes(8, signed=True)
            leases.append(Lease(key, token, task, robots_at, interval_s > 0))
            updates.append((due, token, worker, current.now, row_id))
        current.connection.executemany(SQL["lease_task"], updates)
        host.waiting -= len(rows)
        host.leased += len(rows)
        host.next_at = current.now + interval_s
        current.tally.update(waiting=-len(rows), leased=len(rows))
        return leases

    def _reclaim(self, current: Step) -> None:
        due = current.execute("due_tasks", current.id, current.now, RECLAIM_BATCH).fetchall()
        for row in due:
            row_id, _, host_id, state, _ = row
            if state == DELAYED:
                current.execute("wake_task", row_id)
                current.host(host_id).waiting += 1
                current.tally.update(delayed=-1, waiting=1)
            else:
                self._lose(current, row)
        # What was taken back can be handed out in this very step.
        current.save_hosts()

    def _lose(self, current: Step, row: tuple[int, int, int, int, int]) -> None:
        """The worker that held it is gone. A task that takes worker after worker is poison."""
        row_id, fingerprint, host_id, _, losses = row
        losses += 1
        wait_s = loss_wait_s(losses, fingerprint % 1024 / 1024)
        state, due, reason = (DELAYED, current.now + wait_s, "") if wait_s else (WAITING, None, "")
        if losses >= current.rules.max_losses:
            state, due, reason = DEAD, None, POISON.format(losses)
        current.execute("lose_task", state, due, reason, row_id)
        host = current.host(host_id)
        host.leased -= 1
        host.waiting += state == WAITING
        host.failed += state == DEAD
        current.tally.update(leased=-1, lost=1, **{_STATES[state]: 1})

    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        return await self._db.run(partial(self._renew, crawl=crawl, leases=leases))

    def _renew(
        self, connection: sqlite3.Connection, crawl: str, leases: Sequence[Lease]
    ) -> list[Lease]:
        with step(connection, crawl, self._clock) as current:
            due = current.now + current.rules.lease_s
            return [
                lease
                for lease in leases
                if not current.execute("renew_lease", due, *_owner(current, lease)).rowcount
            ]

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        return await self._db.run(partial(self._finish, crawl=crawl, outcomes=outcomes))

    def _finish(
        self, connection: sqlite3.Connection, crawl: str, outcomes: Sequence[Outcome]
    ) -> list[Lease]:
        with step(connection, crawl, self._clock) as current:
            stale: list[Lease] = []
            follow_ups: list[Entry] = []
            for outcome in outcomes:
                if self._end_try(current, outcome):
                    follow_ups += outcome.follow_ups
                else:
                    stale.append(outcome.lease)
            self._queue(current, follow_ups)
        return stale

    def _end_try(self, current: Step, outcome: Outcome) -> bool:
        """End one try, if its lease is still owned."""
        owned = current.execute("owned_task", *_owner(current, outcome.lease)).fetchone()
        if owned is None:
            return False
        row_id, host_id, attempts, leased_at = owned
        host = current.host(host_id)
        host.leased -= 1
        _adjust(current, host, outcome, leased_at)
        state, due = _next_state(current, outcome)
        attempts += outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
        values = (state, attempts, due, outcome.reason, outcome.detail, row_id)
        current.execute("move_task", *values)
        host.waiting += state == WAITING
        host.done += state == DONE
        host.failed += outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
        _tally(current, outcome, _STATES[state])
        return True

    async def robots(self, crawl: str, host: str) -> Robots | None:
        def read(connection: sqlite3.Connection) -> Robots | None:
            crawl_id = crawl_row(connection, crawl)["id"]
            row = connection.execute(SQL["robots"], (crawl_id, host)).fetchone()
            return _read_robots(row[0]) if row else None

        return await self._db.run(read)

    # Looking after a crawl

    async def control(self, crawl: str, action: Control) -> CrawlState:
        return await self._db.run(partial(self._control, crawl=crawl, action=action))

    def _control(self, connection: sqlite3.Connection, crawl: str, action: Control) -> CrawlState:
        with step(connection, crawl, self._clock) as current:
            if action is Control.SEAL:
                current.seal()
            elif action is Control.CANCEL and current.state is not CrawlState.FINISHED:
                current.cancel()
            elif current.state.over:
                raise ConfigError(f"cannot {action} crawl '{crawl}': it is {current.state}")
            else:
                paused = action is Control.PAUSE
                current.set_state(CrawlState.PAUSED if paused else CrawlState.RUNNING)
        return current.state

    async def forget(self, crawl: str) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                row = connection.execute(SQL["crawl"], (crawl,)).fetchone()
                for table in ("robots", "tasks", "hosts", "crawl") if row else ():
                    connection.execute(SQL[f"forget_{table}"], row[:1])

        await self._db.run(delete)

    async def holders(self, crawl: str) -> list[str]:
        def read(connection: sqlite3.Connection) -> list[str]:
            crawl_id = crawl_row(connection, crawl)["id"]
            return [row[0] for row in connection.execute(SQL["holders"], (crawl_id,))]

        return await self._db.run(read)

    async def release(self, crawl: str, worker: str) -> int:
        def take_back(connection: sqlite3.Connection) -> int:
            with step(connection, crawl, self._clock) as current:
                held = current.execute("held_tasks", current.id, worker).fetchall()
                for row in held:
                    self._lose(current, row)
            return len(held)

        return await self._db.run(take_back)

    async def revive(self, crawl: str, fingerprints: Sequence[bytes] | None = None) -> int:
        return await self._db.run(partial(self._raise_dead, crawl=crawl, chosen=fingerprints))

    def _raise_dead(
        self, connection: sqlite3.Connection, crawl: str, chosen: Sequence[bytes] | None
    ) -> int:
        with step(connection, crawl, self._clock) as current:
            dead = _dead_ids(current, chosen)
            if dead and current.state is CrawlState.CANCELLED:
                raise ConfigError(CANCELLED.format(crawl))
            for row_id, host_id in dead:
                current.execute("revive_task", row_id)
                current.host(host_id).waiting += 1
            current.tally.update(dead=-len(dead), waiting=len(dead))
            if dead and current.state is CrawlState.FINISHED:
                current.set_state(CrawlState.RUNNING)
        return len(dead)

    async def bury(self, crawl: str, fingerprints: Sequence[bytes] | None = None) -> int:
        def drop(connection: sqlite3.Connection) -> int:
            with step(connection, crawl, self._clock) as current:
                dead = _dead_ids(current, fingerprints)
                for row_id, _ in dead:
                    current.execute("bury_task", row_id)
                current.tally.update(dead=-len(dead), dropped=len(dead))
            return len(dead)

        return await self._db.run(drop)

    # Asking

    async def stats(self, crawl: str) -> Stats:
        return await self._db.run(lambda c: stats_of(crawl_row(c, crawl), self._clock()))

    async def crawls(self) -> list[Stats]:
        return await self._db.run(lambda c: [stats_of(r, self._clock()) for r in all_rows(c)])

    async def find(self, crawl: str, fingerprint: bytes) -> Record | None:
        def read(connection: sqlite3.Connection) -> Record | None:
            key = crawl_row(connection, crawl)["id"], _as_int(fingerprint)
            row = connection.execute(SQL["find_task"], key).fetchone()
            return _record(row) if row else None

        return await self._db.run(read)

    async def dead(self, crawl: str, limit: int, after: bytes | None = None) -> list[Record]:
        def read(connection: sqlite3.Connection) -> list[Record]:
            values = {
                "crawl_id": crawl_row(connection, crawl)["id"],
                "after": _as_int(after) if after else None,
                "limit": limit,
            }
            return [_record(row) for row in connection.execute(SQL["dead_tasks"], values)]

        return await self._db.run(read)

    async def hosts(self, crawl: str, limit: int) -> list[Host]:
        def read(connection: sqlite3.Connection) -> list[Host]:
            crawl_id = crawl_row(connection, crawl)["id"]
            rows = connection.execute(SQL["busiest_hosts"], (crawl_id, limit))
            return [Host(**dict(zip(Host.__struct_fields__, row, strict=True))) for row in rows]

        return await self._db.run(read)

    async def close(self) -> None:
        await self._db.close()


def _as_int(fingerprint: bytes) -> int:
    return int.from_bytes(fingerprint, signed=True)


def _as_json(fingerprints: Iterable[int]) -> str:
    return _encode_json(list(fingerprints)).decode()


def _owner(current: Step, lease: Lease) -> tuple[int, int, str]:
    return current.id, _as_int(lease.fingerprint), lease.token


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
    """What the try says of its host: its robots.txt, its pace, a slot that was not used."""
    if outcome.robots is not None:
        _keep_robots(current, host, outcome.robots, leased_at)
    if outcome.pushback is not None:
        wait_s = outcome.pushback.retry_after_s
        host.pace = after_pushback(host.pace, current.now, leased_at, wait_s)
    elif outcome.verdict is Verdict.DONE:
        host.pace = after_success(host.pace, leased_at)
    not_served_since = host.next_at == leased_at + current.interval_of(host)
    if not outcome.sent and not_served_since and host.pushed_at < leased_at:
        # Nor was anybody told to wait: the slot is free again.
        host.next_at = current.now


def _keep_robots(current: Step, host: Schedule, robots: Robots, leased_at: float) -> None:
    current.execute("save_robots", host.id, _encode_json(robots).decode())
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


def _dead_ids(current: Step, chosen: Sequence[bytes] | None) -> list[tuple[int, int]]:
    keys = None
    if chosen is not None:
        keys = _as_json(map(_as_int, chosen))
    values = {"crawl_id": current.id, "fingerprints": keys}
    return current.connection.execute(SQL["dead_ids"], values).fetchall()


def _record(row: tuple[int, bytes, int, int, int, str, str, float | None, str | None]) -> Record:
    fingerprint, payload, state, attempts, losses, reason, detail, due, worker = row
    task = wire.decode(payload)
    task.retry_count = attempts
    return Record(
        fingerprint=fingerprint.to_bytes(8, signed=True),
        task=task,
        state=_STATES[state],
        losses=losses,
        reason=reason,
        detail=detail,
        due=due,
        worker=worker or "",
    )
