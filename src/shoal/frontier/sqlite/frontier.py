"""The embedded frontier: one SQLite file, shared by all processes of one machine."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.exits import Exit, ExitEntry, LaneState, Lent, PoolRules, PoolState
from shoal.core.identities import Account, IdentityReport
from shoal.core.records import Robots
from shoal.core.shapes import Trap
from shoal.core.urls import number_of
from shoal.drivers.sqlite import Database, transaction
from shoal.errors import ConfigError, UnknownCrawl
from shoal.frontier.facts import check_name, steered
from shoal.frontier.port import Capabilities, Frontier, Held
from shoal.frontier.sqlite.board import SqliteNotes
from shoal.frontier.sqlite.dead import (
    BEFORE_ALL,
    Part,
    Place,
    count_dead,
    purge_some,
    retry_some,
    retry_these,
)
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.finish import end_tries
from shoal.frontier.sqlite.handing import hand_out
from shoal.frontier.sqlite.holds import accounts_of, hold, hold_on, let_go
from shoal.frontier.sqlite.lease import lose, queue, wait_s
from shoal.frontier.sqlite.pools import exits_of, lanes_of, pools_of, put_pool
from shoal.frontier.sqlite.queries import (
    chains_of,
    dead_of,
    holders_of,
    hosts_of,
    leased_of,
    record_of,
    records_of,
    robots_of,
    traps_in,
    workers_of,
)
from shoal.frontier.sqlite.statements import PART, SCHEMA, SQL, add_missing_counters
from shoal.frontier.sqlite.step import (
    Clock,
    Step,
    all_rows,
    as_json,
    crawl_row,
    name_of,
    stats_of,
    step,
)
from shoal.frontier.sqlite.taking_back import take_back_all
from shoal.frontier.sqlite.turns import take_turn
from shoal.frontier.values import (
    ALL_DEAD,
    CANCELLED,
    WORKER_SILENT_S,
    Added,
    Ask,
    Chain,
    Control,
    CrawlState,
    DeadFilter,
    DeadPlace,
    Entry,
    Grant,
    Host,
    HostOrder,
    Lease,
    Leased,
    Outcome,
    Pulse,
    Record,
    Stats,
)

_FORGOTTEN = (
    "jars",
    "robots",
    "workers",
    "shares",
    "lanes",
    "tasks",
    "remembered",
    "failures",
    "own_counts",
    "alike",
    "hosts",
    "crawl",
)
_encode_json = msgspec.json.encode


class SqliteFrontier(Frontier):
    """The complete port on one file. Each method is one transaction."""

    capabilities = Capabilities(
        strict_priorities=True,
        chains_across_hosts=True,
        exact_waits=True,
        exact_max_pages=True,
        exact_rate=True,
        bounded_seen=False,
        keeps_ended=True,
        whole_backlog=True,
    )

    def __init__(self, path: Path, clock: Clock = time.time) -> None:
        # A power cut may undo the last steps, the latest first: their work is done again, not lost.
        self._db = Database(path, PART, SCHEMA, add_missing_counters)
        self._clock = clock
        self._notes = SqliteNotes(self._db, clock)

    @property
    def notes(self) -> SqliteNotes:
        return self._notes

    # Adding work

    async def start(self, crawl: str, rules: Rules, *, again: bool = True) -> Stats:
        _refuse_what_only_redis_can(rules)
        return await self._db.run(partial(self._start, crawl=crawl, rules=rules, again=again))

    def _start(
        self, connection: sqlite3.Connection, crawl: str, rules: Rules, *, again: bool
    ) -> Stats:
        with transaction(connection):
            row = self._row_or_new(connection, crawl, rules)
            state = CrawlState(row["state"])
            if state.over and not again:
                return stats_of(connection, row, self._clock)
            if state is CrawlState.CANCELLED:
                raise ConfigError(CANCELLED.format(crawl))
            sealed = state.live and row["sealed"]
            state = CrawlState.PAUSED if state is CrawlState.PAUSED else CrawlState.RUNNING
            values = (state, _encode_json(rules).decode(), sealed, self._clock(), row["id"])
            connection.execute(SQL["start_crawl"], values)
            return stats_of(connection, crawl_row(connection, crawl), self._clock)

    def _row_or_new(
        self, connection: sqlite3.Connection, crawl: str, rules: Rules
    ) -> dict[str, Any]:
        try:
            return crawl_row(connection, crawl)
        except UnknownCrawl:
            check_name(crawl)
            values = (crawl, _encode_json(rules).decode(), self._clock())
            connection.execute(SQL["create_crawl"], values)
            return crawl_row(connection, crawl)

    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        return await self._db.run(partial(self._add, crawl=crawl, entries=entries))

    def _add(self, connection: sqlite3.Connection, crawl: str, entries: Sequence[Entry]) -> Added:
        with transaction(connection):
            current = Step(connection, self._row_to_fill(connection, crawl), self._clock)
            again = [entry.fingerprint for entry in entries if entry.retry]
            retried = retry_these(current, again) if again else 0
            added = queue(current, entries)
            if current.state is CrawlState.FINISHED and added.added:
                current.set_state(CrawlState.RUNNING)
            current.close()
        return added.with_retried(retried)

    async def remember(self, crawl: str, fingerprints: Sequence[bytes]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                crawl_id = self._row_to_fill(connection, crawl)["id"]
                keys = as_json(map(number_of, fingerprints))
                connection.execute(SQL["remember"], (crawl_id, keys, crawl_id))

        await self._db.run(write)

    def _row_to_fill(self, connection: sqlite3.Connection, crawl: str) -> dict[str, Any]:
        row = self._row_or_new(connection, crawl, Rules())
        if row["state"] == CrawlState.CANCELLED:
            raise ConfigError(CANCELLED.format(crawl))
        return row

    # Working

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        return await self._db.run(partial(self._lease, crawl=crawl, ask=ask))

    def _lease(self, connection: sqlite3.Connection, crawl: str, ask: Ask) -> Grant:
        idle = None if ask.holdings else self._nothing_to_lease(connection, crawl, ask)
        return idle or self._exchange(connection, crawl, [], ask)[1]

    def _nothing_to_lease(
        self, connection: sqlite3.Connection, crawl: str, ask: Ask
    ) -> Grant | None:
        """The answer if there is nothing to lease; otherwise None. It needs no write lock, so that
        idle workers do not hinder busy ones."""
        current = Step(connection, crawl_row(connection, crawl), self._clock)
        if current.state is not CrawlState.RUNNING:
            return Grant(current.state)
        if current.has_jumped:
            return None  # Has to be written, or the clock would stay at this moment.
        if ask.pools and ask.slots > 0 and current.exits.is_sweep_due:
            return None  # Exits may be taken back.
        idle_s = wait_s(current, ask)
        if idle_s == 0.0:
            return None
        return Grant(current.state, wait_s=idle_s, has_waiting=current.count("waiting") > 0)

    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        return await self._db.run(partial(self._renew, crawl=crawl, leases=leases))

    def _renew(
        self, connection: sqlite3.Connection, crawl: str, leases: Sequence[Lease]
    ) -> list[Lease]:
        with step(connection, crawl, self._clock) as current:
            due = current.now + current.rules.lease_s
            if shared := [name_of(lease) for lease in leases if lease.shared]:
                current.execute("renew_shares", due, current.now, as_json(shared), current.id)
            return [lease for lease in leases if not _renewed(current, lease, due)]

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        return await self._db.run(partial(self._finish, crawl=crawl, outcomes=outcomes))

    def _finish(
        self, connection: sqlite3.Connection, crawl: str, outcomes: Sequence[Outcome]
    ) -> list[Lease]:
        with step(connection, crawl, self._clock) as current:
            return end_tries(current, outcomes)

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        return await self._db.run(partial(self._exchange, crawl=crawl, outcomes=outcomes, ask=ask))

    def _exchange(
        self, connection: sqlite3.Connection, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        with step(connection, crawl, self._clock) as current:
            stale = end_tries(current, outcomes)
            answer = hand_out(current, ask)
        return stale, answer.answer()

    async def robots(self, crawl: str, host: str) -> Robots | None:
        return await self._db.run(partial(robots_of, crawl=crawl, host=host))

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        def write(connection: sqlite3.Connection) -> None:
            with step(connection, crawl, self._clock) as current:
                current.execute("strike_workers", current.id, current.now - WORKER_SILENT_S)
                heard = _encode_json(replace(pulse, at=current.clock.by_machine)).decode()
                current.execute("beat", current.id, pulse.worker, current.now, heard)

        await self._db.run(write)
        return False

    # Controlling a crawl

    async def control(self, crawl: str, action: Control) -> CrawlState:
        return await self._db.run(partial(self._control, crawl=crawl, action=action))

    def _control(self, connection: sqlite3.Connection, crawl: str, action: Control) -> CrawlState:
        with step(connection, crawl, self._clock) as current:
            state = steered(crawl, current.state, action)
            if action is Control.SEAL:
                current.seal()
            elif action is Control.CANCEL:
                current.cancel()
            else:
                current.set_state(state)
        return current.state

    async def forget(self, crawl: str) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                crawl_id = crawl_row(connection, crawl)["id"]
                take_back_all(Exits(connection, self._clock()), crawl_id)
                for part in _FORGOTTEN:
                    connection.execute(SQL[f"forget_{part}"], [crawl_id])

        with suppress(UnknownCrawl):
            await self._db.run(delete)

    async def holders(self, crawl: str) -> list[str]:
        return await self._db.run(lambda c: holders_of(c, crawl, self._clock))

    async def release(self, crawl: str, worker: str) -> int:
        def take_back(connection: sqlite3.Connection) -> int:
            with step(connection, crawl, self._clock) as current:
                held = current.execute("held_tasks", current.id, worker).fetchall()
                for row in held:
                    lose(current, row)
                for (host_id,) in current.execute("shared_hosts", current.id, worker).fetchall():
                    current.shares.put(current.host(host_id), worker, None)
            return len(held)

        return await self._db.run(take_back)

    async def retry_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        return await self._move_dead(crawl, which, retry_some, dry_run=dry_run)

    async def purge_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        return await self._move_dead(crawl, which, purge_some, dry_run=dry_run)

    async def _move_dead(
        self, crawl: str, which: DeadFilter, move_some: Callable[..., Part], *, dry_run: bool
    ) -> int:
        if dry_run:
            return await self._db.run(lambda c: count_dead(c, crawl, which))
        total, after = 0, cast("Place | None", BEFORE_ALL)
        while after is not None:
            move = partial(move_some, crawl=crawl, clock=self._clock, which=which, after=after)
            count, after = await self._db.run(move)
            total += count
        return total

    # Queries

    async def stats(self, crawl: str) -> Stats:
        return await self._db.run(lambda c: stats_of(c, crawl_row(c, crawl), self._clock))

    async def crawls(self) -> list[Stats]:
        return await self._db.run(lambda c: [stats_of(c, r, self._clock) for r in all_rows(c)])

    async def find(self, crawl: str, entry: Entry) -> Record | None:
        return await self._db.run(partial(record_of, crawl=crawl, entry=entry))

    async def find_others(
        self, crawl: str, site: str, is_wanted: Callable[[str], bool], limit: int
    ) -> list[Record]:
        return await self._db.run(
            partial(records_of, crawl=crawl, site=site, is_wanted=is_wanted, limit=limit)
        )

    async def dead(
        self,
        crawl: str,
        limit: int,
        after: DeadPlace | None = None,
        which: DeadFilter = ALL_DEAD,
    ) -> list[Record]:
        listed = partial(dead_of, crawl=crawl, limit=limit, after=after, which=which)
        return await self._db.run(listed)

    async def leased(self, crawl: str, limit: int) -> list[Leased]:
        return await self._db.run(partial(leased_of, crawl=crawl, limit=limit))

    async def hosts(
        self, crawl: str, limit: int, order: HostOrder = HostOrder.BUSIEST
    ) -> list[Host]:
        return await self._db.run(partial(hosts_of, crawl=crawl, limit=limit, order=order))

    async def traps(self, crawl: str, limit: int) -> list[Trap]:
        return await self._db.run(partial(traps_in, crawl=crawl, limit=limit))

    async def chains(self, crawl: str, limit: int) -> list[Chain]:
        return await self._db.run(partial(chains_of, crawl=crawl, limit=limit))

    async def workers(self, crawl: str) -> list[Pulse]:
        return await self._db.run(lambda c: workers_of(c, crawl, self._clock))

    # Exits

    async def put_pool(self, rules: PoolRules, exits: Sequence[ExitEntry]) -> None:
        await self._db.run(lambda c: put_pool(c, self._clock, rules, exits))

    async def pools(self) -> list[PoolState]:
        return await self._db.run(lambda c: pools_of(c, self._clock))

    async def exits(self, pool: str) -> list[Exit]:
        return await self._db.run(lambda c: exits_of(c, self._clock, pool))

    async def lanes(self, crawl: str, limit: int) -> list[LaneState]:
        return await self._db.run(lambda c: lanes_of(c, self._clock, crawl, limit))

    async def turn(self, crawl: str, host: str, lent: Lent | None) -> float:
        def reserve(connection: sqlite3.Connection) -> float:
            with step(connection, crawl, self._clock) as current:
                return take_turn(current, host, lent)

        return await self._db.run(reserve)

    async def accounts(self, group: str, *, jars: bool = False) -> list[Account]:
        return await self._db.run(lambda c: accounts_of(c, self._clock, group, jars=jars))

    async def hold(self, identity: str, host: str | None, seconds: float) -> Held | None:
        return await self._db.run(lambda c: hold(c, self._clock, identity, host, seconds))

    async def hold_on(self, held: Held, seconds: float) -> Held | None:
        return await self._db.run(lambda c: hold_on(c, self._clock, held, seconds))

    async def let_go(self, held: Held, report: IdentityReport) -> bool:
        return await self._db.run(lambda c: let_go(c, self._clock, held, report))

    async def close(self) -> None:
        await self._db.close()


def _refuse_what_only_redis_can(rules: Rules) -> None:
    if rules.seen == "bloom":
        raise ConfigError("seen = 'bloom' needs a redis:// frontier: a file is exact at any size")
    if rules.seen_for is not None:
        raise ConfigError("seen_for needs a redis:// frontier: a file forgets no URL")


def _renewed(current: Step, lease: Lease, due: float) -> bool:
    query = "renew_lease" if lease.identity is None else "renew_lease_of_account"
    return current.execute(query, due, current.id, *name_of(lease)).rowcount > 0
