"""Exits, pairs and pools, as a step sees and changes them. What they say is core/exit_policy.py's.

Exits have a clock of their own: all crawls share them.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from shoal.core import exit_policy as policy
from shoal.core.exits import Exit, Pair, PoolRules, Spent
from shoal.drivers.sqlite import write_rows
from shoal.frontier.clock import JUMP_S, moment
from shoal.frontier.sqlite.statements import SQL

_read_exit = msgspec.json.Decoder(Exit).decode
_read_pair = msgspec.json.Decoder(Pair).decode
_read_spent = msgspec.json.Decoder(Spent).decode
_encode = msgspec.json.encode

RANDOM_AMONG = 50
"""If any exit will do, it is one of so many: to read all of a large pool would take longer."""

SWEPT_AT_ONCE = 1000
"""So many pairs are removed, and so many exits taken back, at a time."""


class Outlook(NamedTuple):
    """How the exits of a pool are doing at a host."""

    listed: int
    out: int
    cooling: int
    usable: int
    full: int
    """Those that are neither out nor cooling, and can be used when a lease ends."""
    next_at: float
    """When the next one may be used that cannot be now. Infinity where time alone frees none."""

    @property
    def busy(self) -> int:
        """Those that only others keep from being used, or their pace."""
        return self.listed - self.out - self.cooling - self.usable

    def again_at(self, now: float) -> float:
        """When a look makes sense, where some are busy."""
        return min(self.next_at, now + policy.BUSY_WAIT_S) if self.full else self.next_at


@lru_cache(maxsize=256)
def read_pool(text: str) -> PoolRules:
    """The rules of a pool, as they are stored."""
    return msgspec.json.decode(text, type=PoolRules)


class Exits:
    """The exits of all pools in one step. Changes are collected, and written by `save`."""

    def __init__(self, connection: sqlite3.Connection, machine_now: float) -> None:
        self._connection = connection
        self._latest, ahead, self._swept_at = connection.execute(SQL["clock"]).fetchone()
        self.clock = moment(machine_now, self._latest, ahead)
        self.now = self.clock.now
        self._has_jumped = self.clock.ahead != ahead
        self.rules: dict[str, PoolRules] = {}
        self.spent: dict[str, Spent] = {}
        self.listed: dict[str, int] = {}
        self._spent_texts: dict[str, str] = {}
        for name, rules, spent, listed in connection.execute(SQL["pools"]):
            self.rules[name], self.listed[name] = read_pool(rules), listed
            self.spent[name], self._spent_texts[name] = _read_spent(spent), spent
        self._exits: dict[str, Exit] = {}
        self._changed: dict[str, Exit] = {}
        self._unusable: dict[str, Outlook] = {}
        self.changes = 0
        """How often an exit has changed in this step."""
        self._pairs: dict[tuple[str, str], Pair | None] = {}
        self._changed_pairs: dict[tuple[str, str], Pair | None] = {}

    # Reading

    def read(self, exit_ids: Iterable[str]) -> None:
        """Read exits that will be asked for."""
        if unread := [exit_id for exit_id in set(exit_ids) if exit_id not in self._exits]:
            for (body,) in self._connection.execute(SQL["exits"], (_text(unread),)):
                self._seen(_read_exit(body))

    def exit(self, exit_id: str) -> Exit | None:
        """One exit. None if there is none of this id."""
        if exit_id not in self._exits:
            self.read([exit_id])
        return self._exits.get(exit_id)

    def read_pairs(self, keys: Iterable[tuple[str, str]]) -> None:
        """Read pairs that will be asked for, by host and exit."""
        if unread := [key for key in set(keys) if key not in self._pairs]:
            self._pairs.update(dict.fromkeys(unread))
            for host, exit_id, body in self._connection.execute(SQL["pairs"], (_text(unread),)):
                self._pairs[host, exit_id] = _read_pair(body)

    def pair(self, host: str, exit_: Exit) -> Pair | None:
        """What is known of an exit, as it is, at a host."""
        if (host, exit_.id) not in self._pairs:
            self.read_pairs([(host, exit_.id)])
        return policy.valid_pair(self._pairs[host, exit_.id], exit_)

    def _seen(self, exit_: Exit) -> Exit:
        return self._exits.setdefault(exit_.id, exit_)

    # Choosing

    def usable(self, pool: str, host: str, count: int) -> list[Exit]:
        """Exits that may be used at a host now: so many at least, if there are."""
        if pool in self._unusable:
            return []
        rules = self.rules[pool]
        if rules.rotation != "rested":
            count = max(count, policy.EXITS_SEEN if rules.rotation == "best" else RANDOM_AMONG)
        # What this step has changed is seen as it was: those may have to be passed over.
        limit = min(count, policy.EXITS_SEEN) + len(self._changed)
        values = {"pool": pool, "host": host, "now": self.now, "limit": limit}
        found: dict[str, Exit] = {}
        if rules.sticky_s:
            values["since"] = self.now - rules.sticky_s
            self._collect(found, host, self._connection.execute(SQL["sticking"], values))
        if len(found) < limit:
            self._collect(found, host, self._connection.execute(SQL["rested"], values))
        return list(found.values())

    def _collect(
        self, found: dict[str, Exit], host: str, rows: Iterator[tuple[str, str | None]]
    ) -> None:
        for body, pair in rows:
            exit_ = self._seen(_read_exit(body))
            key = host, exit_.id
            if key not in self._pairs:
                self._pairs[key] = None if pair is None else _read_pair(pair)
            found[exit_.id] = exit_

    def ordered(self, exits: Sequence[Exit], host: str) -> list[Exit]:
        """Those that may still be used at a host, now that some were lent, in the order to use
        them: first what sticks to the host, then as the pool has it."""
        ranks = [
            (self._rank(exit_, host), exit_) for exit_ in exits if self._is_usable(exit_, host)
        ]
        return [exit_ for _, exit_ in sorted(ranks, key=itemgetter(0))]

    def _is_usable(self, exit_: Exit, host: str) -> bool:
        ready_at = policy.exit_ready_at(exit_, self.rules[exit_.pool])
        return max(ready_at, policy.pair_ready_at(self.pair(host, exit_))) <= self.now

    def _rank(self, exit_: Exit, host: str) -> tuple[int, float, str]:
        rules, pair = self.rules[exit_.pool], self.pair(host, exit_)
        if pair is not None and policy.is_sticking(pair, rules, self.now):
            return 0, pair.since, exit_.id
        if rules.rotation == "random":
            return 1, random.random(), exit_.id  # noqa: S311
        if rules.rotation == "best":
            return 1, -policy.score_at(pair, exit_, self.now), exit_.id
        return 1, exit_.used_at, exit_.id

    def may_spend(self, pool: str) -> bool:
        """Whether one more request may leave by an exit of this pool."""
        return policy.may_spend(self.spent[pool], self.rules[pool], self.now)

    def next_free(self, pool: str) -> float:
        """When the next exit of a pool may be used, whatever the host."""
        (at,) = self._connection.execute(SQL["next_free"], (pool,)).fetchone()
        return inf if at is None else float(at)

    def outlook(self, pool: str, host: str = "") -> Outlook:
        """How the exits of a pool are doing, at a host or without one. If none may be used whatever
        the host, that is known of all hosts until one changes."""
        if (known := self._unusable.get(pool)) is not None:
            return known
        self.save()
        values = {"pool": pool, "host": host, "now": self.now}
        *counts, at = self._connection.execute(SQL["outlook"], values).fetchone()
        listed, out, cooling, usable, full = map(int, counts)
        found = Outlook(listed, out, cooling, usable, full, inf if at is None else at)
        if not host and not usable:
            self._unusable[pool] = found
        return found

    # Changing

    def lend(self, exit_: Exit, host: str) -> None:
        """Hand an exit out for a request to a host."""
        self.spent[exit_.pool].leased += 1
        kept = policy.lend(exit_, self.pair(host, exit_), self.rules[exit_.pool], self.now)
        self.put(exit_)
        if kept is not None:
            self.put_pair(host, exit_.id, kept)

    def give_back(self, exit_: Exit, pair: Pair | None, leased_at: float) -> None:
        """An exit that was lent is free again."""
        policy.unlend(exit_, pair, leased_at)
        spent = self.spent[exit_.pool]
        spent.leased = max(spent.leased - 1, 0)
        self.put(exit_)

    def take_back_all(self, crawl_id: int) -> None:
        """All leases of a crawl are void: so is what was lent with them."""
        lent = self._connection.execute(SQL["passages_of_crawl"], (crawl_id,)).fetchall()
        self._take_back(lent)
        self.save()
        self._connection.execute(SQL["forget_passages"], (crawl_id,))

    def _take_back(self, lent: Iterable[tuple[str, str, float]]) -> None:
        for exit_id, host, leased_at in lent:
            if (exit_ := self.exit(exit_id)) is not None:
                pair = self.pair(host, exit_)
                self.give_back(exit_, pair, leased_at)
                if pair is not None:
                    self.put_pair(host, exit_id, pair)

    def put(self, exit_: Exit) -> None:
        """An exit has changed."""
        self._changed[exit_.id] = self._exits[exit_.id] = exit_
        self._unusable.clear()
        self.changes += 1

    def put_pair(self, host: str, exit_id: str, pair: Pair | None) -> None:
        """What is known of an exit at a host has changed. None: there is nothing to say."""
        self._pairs[host, exit_id] = self._changed_pairs[host, exit_id] = pair

    def save(self) -> None:
        """Write what has changed."""
        write_rows(
            self._connection, SQL["save_exits"], list(map(self._row, self._changed.values()))
        )
        kept = [(*key, pair) for key, pair in self._changed_pairs.items() if pair is not None]
        write_rows(self._connection, SQL["save_pairs"], [self._pair_row(*row) for row in kept])
        for key, pair in self._changed_pairs.items():
            if pair is None:
                self._connection.execute(SQL["drop_pair"], key)
        self._changed.clear()
        self._changed_pairs.clear()
        for name, spent in self.spent.items():
            if (text := _encode(spent).decode()) != self._spent_texts[name]:
                self._connection.execute(SQL["save_spent"], (text, name))
                self._spent_texts[name] = text
        self._save_clock()

    def _save_clock(self) -> None:
        if self._has_jumped or self.now >= self._latest + JUMP_S:
            self._connection.execute(SQL["set_clock"], (self.now, self.clock.ahead))
            self._has_jumped, self._latest = False, self.now

    @property
    def is_sweep_due(self) -> bool:
        """Whether the last one was long ago."""
        return bool(self.now >= self._swept_at + policy.SWEEP_EVERY_S)

    def sweep(self) -> None:
        """Now and then, remove pairs that say nothing any more, and take exits back whose leases
        have expired: in their crawl there may be nobody left to do so."""
        if self.is_sweep_due:
            self._swept_at = self.now
            values = self.clock.by_machine, SWEPT_AT_ONCE
            rows = self._connection.execute(SQL["expired_passages"], values).fetchall()
            self._take_back(row[1:] for row in rows)
            self._connection.execute(SQL["unlend"], (_text([row[0] for row in rows]),))
            self._connection.execute(SQL["sweep_pairs"], (self.now, SWEPT_AT_ONCE))
            self._connection.execute(SQL["note_sweep"], (self.now,))

    def _row(self, exit_: Exit) -> tuple[Any, ...]:
        rules = self.rules.get(exit_.pool)
        free_at = policy.exit_ready_at(exit_, rules) if rules else inf
        return (
            exit_.id,
            exit_.pool,
            exit_.is_listed,
            exit_.session,
            exit_.used_at,
            None if free_at == inf else free_at,
            exit_.out_until,
            _encode(exit_).decode(),
        )

    def _pair_row(self, host: str, exit_id: str, pair: Pair) -> tuple[Any, ...]:
        exit_ = self._exits[exit_id]
        return (
            host,
            exit_id,
            pair.session,
            pair.since,
            policy.pair_ready_at(pair),
            pair.cool_until,
            policy.pair_void_at(pair, self.rules.get(exit_.pool), self.now),
            _encode(pair).decode(),
        )


def _text(values: Any) -> str:
    return _encode(values).decode()
