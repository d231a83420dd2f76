"""Decides which lanes a worker may be served from, and which of them need no look now."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core import exit_policy as policy
from shoal.core.identities import group_of, is_group
from shoal.frontier.sqlite.account_outlooks import busy_until
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.sqlite.step import Step
from shoal.frontier.values import Ask


def pools_known(exits: Exits, ask: Ask) -> tuple[str, ...]:
    """The pools that a worker can use. For a group whose accounts use a pool, it must know both."""
    if not any(map(is_group, ask.pools)):
        return ask.pools
    through = {name: exits.rules[name].through for name in ask.pools if name in exits.rules}
    return tuple(name for name in ask.pools if not through.get(name) or through[name] in ask.pools)


class HeldUp:
    """Pools whose exits cannot be used now, though some are only busy: their lanes need no look."""

    def __init__(self, exits: Exits, known: Sequence[str], worker: str) -> None:
        self._exits = exits
        self._worker = worker
        self._known = frozenset(known)
        self._until: dict[str, float | None] = {}
        self._outlooks: dict[str, float | None] = {}
        self._as_of = exits.changes

    def look_again(self) -> None:
        """Discard what is known if exits have changed meanwhile."""
        if self._as_of != self._exits.changes:
            self._exits.save()
            self._as_of = self._exits.changes
            self._until.clear()
            self._outlooks.clear()

    def until(self, pool: str) -> float | None:
        """Until when the lanes of a pool need no look, by the exits' clock. None: look now."""
        if pool not in self._until:
            self._until[pool] = self._earliest(policy.tiers(pool, self._exits.rules))
        return self._until[pool]

    def _earliest(self, names: Sequence[str]) -> float | None:
        """The earliest time of a pool and those to which its tasks may escalate."""
        found = [self._of(name) for name in names if group_of(name) in self._known]
        if not found or 0.0 in found:
            return None
        busy = [at for at in found if at is not None]
        return min(busy) if busy else None

    def _of(self, pool: str) -> float | None:
        """0 if an exit may be used now; None if none is even busy; otherwise when to look again."""
        if pool not in self._outlooks:
            self._outlooks[pool] = self._look(pool)
        return self._outlooks[pool]

    def _look(self, pool: str) -> float | None:
        exits = self._exits
        if is_group(pool):
            until = busy_until(exits, pool, self._worker)
            return 0.0 if until is None else until
        if exits.next_free(pool) <= exits.now:
            return 0.0
        outlook = exits.outlook(pool)
        if not outlook.busy:
            return None
        return outlook.again_at(exits.now)


def pools_served(exits: Exits, known: Sequence[str]) -> list[str]:
    """The pools whose lanes may use exits of the pools that a worker knows."""
    above = (name for name in exits.rules if set(policy.tiers(name, exits.rules)) & set(known))
    return list(dict.fromkeys([*known, *above]))


def of_accounts(current: Step, group: str, worker: str) -> dict[str, object]:
    """The parameters of statements about lanes of single accounts."""
    whose = {"crawl_id": current.id, "group": group, "worker": worker}
    return {**whose, "now": current.exits.now, "crawl_now": current.now}


def next_look(current: Step, ask: Ask) -> float | None:
    """When this worker should look at the lanes next, by the clock of the crawl."""
    exits = current.exits
    known = pools_known(exits, ask)
    held_up = HeldUp(exits, known, ask.worker)
    moments = []
    for pool in pools_served(exits, known):
        (at,) = current.execute("next_lane", current.id, pool).fetchone()
        if at is not None:
            if at <= current.now and (until := held_up.until(pool)) is not None:
                at = current.by_crawl(until)
            moments.append(at)
        if is_group(pool):
            found = current.connection.execute(
                SQL["next_lane_of_accounts"], of_accounts(current, pool, ask.worker)
            )
            moments += [at for (at,) in found if at is not None]
    return min(moments, default=None)
