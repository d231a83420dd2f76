"""Exits, pairs and pools as a step reads and changes them. core/exit_policy.py decides about them.

Exits have a clock of their own, as all crawls share them.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from operator import itemgetter
from typing import Any

import msgspec

from shoal.core import exit_policy as policy
from shoal.core import identity_policy
from shoal.core.exits import Exit, Pair, PoolRules, Spent
from shoal.core.identities import is_group
from shoal.drivers.sqlite import write_rows
from shoal.frontier.clock import JUMP_S, moment
from shoal.frontier.sqlite.accounts import Accounts
from shoal.frontier.sqlite.outlooks import Outlook
from shoal.frontier.sqlite.statements import SQL

_read_exit = msgspec.json.Decoder(Exit).decode
_read_pair = msgspec.json.Decoder(Pair).decode
_read_spent = msgspec.json.Decoder(Spent).decode
_encode = msgspec.json.encode

RANDOM_AMONG = 50
"""How many exits a random one is chosen from: reading all of a large pool would take longer."""


@lru_cache(maxsize=256)
def read_pool(text: str) -> PoolRules:
    """Decode the stored rules of a pool."""
    return msgspec.json.decode(text, type=PoolRules)


class Exits:
    """The exits of all pools in one step. Changes are collected, and written by `save`."""

    def __init__(self, connection: sqlite3.Connection, machine_now: float) -> None:
        self.connection = connection
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
        """How often exits have changed in this step."""
        self._pairs: dict[tuple[str, str], Pair | None] = {}
        self._changed_pairs: dict[tuple[str, str], Pair | None] = {}
        self._accounts: Accounts | None = None

    @property
    def unsaved(self) -> int:
        """How many exits have changes that statements do not see yet."""
        return len(self._changed)

    @property
    def accounts(self) -> Accounts:
        """The state that accounts have besides their state as exits."""
        if self._accounts is None:
            self._accounts = Accounts(self.connection)
        return self._accounts

    # Reading

    def read(self, exit_ids: Iterable[str]) -> None:
        """Read exits that are needed soon."""
        if unread := [exit_id for exit_id in set(exit_ids) if exit_id not in self._exits]:
            for (body,) in self.connection.execute(SQL["exits"], (_text(unread),)):
                self.seen(body)

    def exit(self, exit_id: str) -> Exit | None:
        """An exit by its id; None if there is none."""
        if exit_id not in self._exits:
            self.read([exit_id])
        return self._exits.get(exit_id)

    def read_pairs(self, keys: Iterable[tuple[str, str]]) -> None:
        """Read pairs that are needed soon, by host and exit."""
        if unread := [key for key in set(keys) if key not in self._pairs]:
            self._pairs.update(dict.fromkeys(unread))
            for host, exit_id, body in self.connection.execute(SQL["pairs"], (_text(unread),)):
                self._pairs[host, exit_id] = _read_pair(body)

    def pair(self, host: str, exit_: Exit) -> Pair | None:
        """The pair of a host and an exit, if it belongs to the exit's current session."""
        if (host, exit_.id) not in self._pairs:
            self.read_pairs([(host, exit_.id)])
        return policy.valid_pair(self._pairs[host, exit_.id], exit_)

    def seen(self, body: str) -> Exit:
        """Decode an exit found by a statement, unless this step has it already, perhaps changed."""
        exit_ = _read_exit(body)
        return self._exits.setdefault(exit_.id, exit_)

    # Choosing

    def usable(self, pool: str, host: str, count: int) -> list[Exit]:
        """Exits that may be used at a host now: at least `count`, if there are as many."""
        if pool in self._unusable:
            return []
        rules = self.rules[pool]
        if rules.rotation != "rested":
            count = max(count, policy.EXITS_SEEN if rules.rotation == "best" else RANDOM_AMONG)
        # The statements do not see this step's changes: changed exits may have to be passed over.
        limit = min(count, policy.EXITS_SEEN) + self.unsaved
        values = {"pool": pool, "host": host, "now": self.now, "limit": limit}
        found: dict[str, Exit] = {}
        if rules.sticky_s:
            values["since"] = self.now - rules.sticky_s
            self._collect(found, host, self.connection.execute(SQL["sticking"], values))
        if len(found) < limit:
            self._collect(found, host, self.connection.execute(SQL["rested"], values))
        return list(found.values())

    def _collect(
        self, found: dict[str, Exit], host: str, rows: Iterator[tuple[str, str | None]]
    ) -> None:
        for body, pair in rows:
            exit_ = self.seen(body)
            key = host, exit_.id
            if key not in self._pairs:
                self._pairs[key] = None if pair is None else _read_pair(pair)
            found[exit_.id] = exit_

    def ordered(self, exits: Sequence[Exit], host: str) -> list[Exit]:
        """Those exits that may still be used at a host, now that some were lent, in the order to
        use them: first those that stick to the host, then by the pool's rotation."""
        ranks = [(self._rank(exit_, host), exit_) for exit_ in exits if self.is_usable(exit_, host)]
        return [exit_ for _, exit_ in sorted(ranks, key=itemgetter(0))]

    def is_usable(self, exit_: Exit, host: str) -> bool:
        """Whether an exit may be used at a host now."""
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
        """Whether one more request may leave through an exit of this pool."""
        return policy.may_spend(self.spent[pool], self.rules[pool], self.now)

    def next_free(self, pool: str) -> float:
        """When the next exit of a pool may be used, whatever the host."""
        (at,) = self.connection.execute(SQL["next_free"], (pool,)).fetchone()
        return inf if at is None else float(at)

    def outlook(self, pool: str, host: str = "") -> Outlook:
        """The outlook of a pool, at a host or without one.

        If all exits are out, that is known for all hosts until one changes. An exit that is merely
        busy may also cool down at a host.
        """
        known = self._unusable.get(pool)
        if known is not None and not (host and known.busy):
            return known
        self.save()
        values = {"pool": pool, "host": host, "now": self.now}
        *counts, at = self.connection.execute(SQL["outlook"], values).fetchone()
        listed, out, cooling, usable, full = map(int, counts)
        found = Outlook(listed, out, cooling, usable, full, inf if at is None else at)
        if not host and not usable:
            self._unusable[pool] = found
        return found

    # Changing

    def lend(self, exit_: Exit, host: str) -> None:
        """Hand out an exit for a request to a host."""
        self.spent[exit_.pool].leased += 1
        kept = policy.lend(exit_, self.pair(host, exit_), self.rules[exit_.pool], self.now)
        self.put(exit_)
        if kept is not None:
            self.put_pair(host, exit_.id, kept)

    def reserve(self, exit_: Exit, host: str) -> None:
        """Note a further request to a host through an exit, besides those for which it was lent."""
        kept = policy.reserve(exit_, self.pair(host, exit_), self.rules[exit_.pool], self.now)
        self.put(exit_)
        if kept is not None:
            self.put_pair(host, exit_.id, kept)

    def give_back(self, exit_: Exit, pair: Pair | None, leased_at: float) -> None:
        """Free an exit that was lent."""
        policy.unlend(exit_, pair, leased_at)
        spent = self.spent[exit_.pool]
        spent.leased = max(spent.leased - 1, 0)
        self.put(exit_)

    def put(self, exit_: Exit) -> None:
        """Note that an exit has changed."""
        self._changed[exit_.id] = self._exits[exit_.id] = exit_
        self._unusable.clear()
        self.changes += 1

    def put_pair(self, host: str, exit_id: str, pair: Pair | None) -> None:
        """Note that a pair has changed. None deletes it."""
        self._pairs[host, exit_id] = self._changed_pairs[host, exit_id] = pair

    def save(self) -> None:
        """Write all changes."""
        write_rows(self.connection, SQL["save_exits"], list(map(self._row, self._changed.values())))
        kept = [(*key, pair) for key, pair in self._changed_pairs.items() if pair is not None]
        write_rows(self.connection, SQL["save_pairs"], [self._pair_row(*row) for row in kept])
        for key, pair in self._changed_pairs.items():
            if pair is None:
                self.connection.execute(SQL["drop_pair"], key)
        self._changed.clear()
        self._changed_pairs.clear()
        if self._accounts is not None:
            self._accounts.save()
        for name, spent in self.spent.items():
            if (text := _encode(spent).decode()) != self._spent_texts[name]:
                self.connection.execute(SQL["save_spent"], (text, name))
                self._spent_texts[name] = text
        self._save_clock()

    def save_changes(self) -> None:
        """Write changes of exits if there are any: a mere query must not wait for other writers."""
        if self._changed:
            self.save()

    def _save_clock(self) -> None:
        if self._has_jumped or self.now >= self._latest + JUMP_S:
            self.connection.execute(SQL["set_clock"], (self.now, self.clock.ahead))
            self._has_jumped, self._latest = False, self.now

    @property
    def is_sweep_due(self) -> bool:
        """Whether the last sweep was long enough ago."""
        return bool(self.now >= self._swept_at + policy.SWEEP_EVERY_S)

    def note_sweep(self) -> None:
        """Note that the sweep is done for now."""
        self._swept_at = self.now

    def _row(self, exit_: Exit) -> tuple[Any, ...]:
        rules, place, free_at = self.rules.get(exit_.pool), exit_.used_at, inf
        if is_group(exit_.pool):
            state = self.accounts.state(exit_.id)
            place = identity_policy.rank_at(state, exit_)
            free_at = identity_policy.ready_at(state, exit_, rules) if rules else inf
        elif rules:
            free_at = policy.exit_ready_at(exit_, rules)
        return (
            exit_.id,
            exit_.pool,
            exit_.is_listed,
            exit_.session,
            place,
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
