"""Pools: stores their rules and exits, and reports their state."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from shoal.core import exit_policy as policy
from shoal.core.exits import Exit, ExitEntry, LaneState, PoolRules, PoolState, Spent
from shoal.core.identities import is_group
from shoal.drivers.sqlite import transaction
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.lanes import LaneSchedule, lane_of
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.sqlite.step import Clock, as_json, crawl_row

_read_exit = msgspec.json.Decoder(Exit).decode


def put_pool(
    connection: sqlite3.Connection, clock: Clock, rules: PoolRules, entries: Sequence[ExitEntry]
) -> None:
    """Create or change a pool. Lanes that may have waited for that are looked at again."""
    listed = {entry.id: entry for entry in entries}
    with transaction(connection):
        at = Exits(connection, clock())
        before = at.rules.get(rules.name)
        values = (rules.name, _text(rules), _text(Spent()), len(listed))
        connection.execute(SQL["put_pool"], values)
        at.rules[rules.name] = rules
        known = {exit_.id: exit_ for exit_ in _all_of(connection, rules.name)}
        at.read(listed)  # An exit may have been in another pool.
        if is_group(rules.name):
            at.accounts.read(listed)
        is_other = before != rules
        for exit_id, entry in listed.items():
            exit_ = known.pop(exit_id, None) or at.exit(exit_id) or Exit(id=exit_id, pool="")
            wanted = replace(
                exit_, pool=rules.name, kind=entry.kind, country=entry.country, is_listed=True
            )
            if is_other or wanted != exit_:
                at.put(wanted)
                is_other = is_other or not exit_.is_listed or exit_.pool != rules.name
        for exit_ in known.values():
            if exit_.is_listed or before != rules:
                at.put(replace(exit_, is_listed=False))
        at.save()
        if is_other:
            wake(connection, at, rules.name)


def wake(connection: sqlite3.Connection, at: Exits, pool: str) -> None:
    """Have the lanes looked at that may have waited for a pool or a group."""
    names = {name for name in at.rules if pool in policy.tiers(name, at.rules)}
    names |= {name for name, rules in at.rules.items() if rules.through == pool}
    connection.execute(SQL["wake_lanes"], (as_json(names | {pool}),))
    if groups := [name for name in names | {pool} if is_group(name)]:
        connection.execute(SQL["wake_lanes_of_accounts"], (as_json(groups),))


def pools_of(connection: sqlite3.Connection, clock: Clock) -> list[PoolState]:
    """All pools, by name."""
    at = Exits(connection, clock())
    return [_state_of(connection, at, name) for name in at.rules]


def _state_of(connection: sqlite3.Connection, at: Exits, pool: str) -> PoolState:
    rules, spent = at.rules[pool], at.spent[pool]
    listed = [exit_ for exit_ in _all_of(connection, pool) if exit_.is_listed]
    cools = _cooling(connection, at, pool)
    out = {exit_.id for exit_ in listed if exit_.out_until > at.now}
    cooling = {exit_.id for exit_ in listed if exit_.id in cools} - out
    if spent.period != policy.period_of(rules, at.now):
        spent = replace(spent, period=policy.period_of(rules, at.now), spent=0.0)
    return PoolState(
        rules=rules,
        exits=len(listed),
        ready=len(listed) - len(out) - len(cooling),
        cooling=len(cooling),
        out=len(out),
        spent=spent,
    )


def exits_of(connection: sqlite3.Connection, clock: Clock, pool: str) -> list[Exit]:
    """The listed exits of a pool, by id."""
    at = Exits(connection, clock())
    cools = _cooling(connection, at, pool)
    return [
        by_machine(replace(exit_, cooling=cools.get(exit_.id, 0)), at.clock.ahead)
        for exit_ in _all_of(connection, pool)
        if exit_.is_listed
    ]


def by_machine(exit_: Exit, ahead: float) -> Exit:
    """An exit whose times are by the machine's clock."""
    for name in ("next_at", "out_until", "out_at", "used_at", "scored_at"):
        setattr(exit_, name, max(getattr(exit_, name) - ahead, 0.0))
    return exit_


def _all_of(connection: sqlite3.Connection, pool: str) -> list[Exit]:
    rows = connection.execute(SQL["exits_of_pool"], (pool,)).fetchall()
    return [_read_exit(body) for (body,) in rows]


def _cooling(connection: sqlite3.Connection, at: Exits, pool: str) -> dict[str, int]:
    """At how many hosts each exit of a pool cools down."""
    return dict(connection.execute(SQL["cooling"], (at.now, pool)).fetchall())


def lanes_of(
    connection: sqlite3.Connection, clock: Clock, crawl: str, limit: int
) -> list[LaneState]:
    """The lanes of a crawl that have waiting tasks; those with the most come first."""
    row = crawl_row(connection, crawl)
    at = Exits(connection, clock())
    found = connection.execute(SQL["fullest_lanes"], (row["id"], limit)).fetchall()
    return [_lane_state(lane_of(row), at) for row in found]


def _lane_state(lane: LaneSchedule, at: Exits) -> LaneState:
    state, names = lane.state, policy.tiers(lane.pool, at.rules)
    return LaneState(
        host=lane.host,
        pool=lane.pool,
        waiting=lane.waiting,
        tier_pool=names[min(state.tier, len(names) - 1)],
        is_site_blocking=at.now < state.site_until,
        starved_s=at.now - state.starved_at if state.starved_at else 0.0,
    )


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
