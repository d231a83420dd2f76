"""The exits of all crawls on Redis: stores pools and their exits, and reads their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from shoal.core import exit_policy as policy
from shoal.core.exits import Exit, ExitEntry, LaneState, PoolRules, PoolState
from shoal.drivers.redis.link import RedisLink
from shoal.drivers.redis.scripts import Argument
from shoal.frontier.redis.exit_forms import exit_of, lane_of, pool_values, spent_of
from shoal.frontier.redis.forms import pack_values
from shoal.frontier.redis.names import EXITS
from shoal.frontier.redis.scripts import script
from shoal.frontier.redis.shard import Clock, Shard
from shoal.frontier.redis.stats import waiting_of

_POOLS = f"{EXITS}pools"
_READ_AT_ONCE = 1000
_MOMENTS = ("next_at", "out_until", "out_at", "used_at", "scored_at")
_read_pool = msgspec.json.Decoder(PoolRules).decode


class _Now(NamedTuple):
    """The time by the clock of the exits, and how far that is ahead of the server's."""

    now: float
    ahead: float


class RedisExits:
    """The exits that all machines share."""

    def __init__(self, link: RedisLink, clock: Clock | None) -> None:
        self._link = link
        self._clock = clock

    async def put(self, rules: PoolRules, entries: Sequence[ExitEntry]) -> None:
        """Create or change a pool."""
        listed = [text for entry in entries for text in (entry.id, entry.kind, entry.country)]
        await self.run(
            "put_pool", msgspec.json.encode(rules), pack_values(pool_values(rules)), *listed
        )
        await self._link.replicated()

    async def pools(self) -> list[PoolState]:
        """All pools, by name."""
        now = await self._now()
        rules = await self._rules()
        return [await self._state(rules[name], now) for name in sorted(rules)]

    async def _state(self, rules: PoolRules, now: _Now) -> PoolState:
        listed = await self._listed(rules.name, now)
        packed = await self._link.command("HGET", f"{EXITS}spent", rules.name)
        spent, period = spent_of(packed), policy.period_of(rules, now.now)
        if spent.period != period:
            spent = replace(spent, period=period, spent=0.0)
        out = sum(exit_.out_until > now.now for exit_ in listed)
        cooling = sum(exit_.cooling > 0 and exit_.out_until <= now.now for exit_ in listed)
        return PoolState(
            rules=rules,
            exits=len(listed),
            ready=len(listed) - out - cooling,
            cooling=cooling,
            out=out,
            spent=spent,
        )

    async def of(self, pool: str) -> list[Exit]:
        """The exits of a pool that are listed, by id. Their times are by the server's clock."""
        return (await self.of_moment(pool))[0]

    async def of_moment(self, pool: str) -> tuple[list[Exit], float]:
        """The exits of a pool as `of` returns them, and how far the clock of the exits is ahead of
        the server's."""
        now = await self._now()
        found = await self._listed(pool, now)
        for exit_ in found:
            for name in _MOMENTS:
                setattr(exit_, name, max(getattr(exit_, name) - now.ahead, 0.0))
        return found, now.ahead

    async def _listed(self, pool: str, now: _Now) -> list[Exit]:
        ids = sorted(await self._link.command("SMEMBERS", f"{EXITS}listed:{pool}"))
        cooling = await self._cooling(now)
        found = list[Exit]()
        for first in range(0, len(ids), _READ_AT_ONCE):
            some = ids[first : first + _READ_AT_ONCE]
            rows = await self._link.command("HMGET", f"{EXITS}exits", *some)
            found += [
                exit_of(each.decode(), row) for each, row in zip(some, rows, strict=True) if row
            ]
        for exit_ in found:
            exit_.cooling = cooling[f"{exit_.id} {exit_.session}"]
        return found

    async def _cooling(self, now: _Now) -> Counter[str]:
        """The number of hosts at which an exit is cooling down, by exit and session."""
        key, since = f"{EXITS}cooling", f"({now.now * 1e6:.0f}"
        members = await self._link.command("ZRANGEBYSCORE", key, since, "+inf")
        return Counter(member.decode().rpartition(" ")[0] for member in members)

    async def lanes(self, shard: Shard, limit: int) -> list[LaneState]:
        """The lanes of a shard in which tasks wait, those with the most first."""
        prefix = await shard.prefix()
        ranked = ("ZRANGE", f"{prefix}lane_load", "+inf", 0, "BYSCORE", "REV", "LIMIT", 0, limit)
        names = await self._link.command(*ranked)
        if not names:
            return []
        now, rules = await self._now(), await self._rules()
        rows = await self._link.command("HMGET", f"{prefix}hosts", *names)
        states = await self._link.command("HMGET", f"{prefix}lanes", *names)
        found = [
            _lane_state(name.decode(), row, state, rules, now.now)
            for name, row, state in zip(names, rows, states, strict=True)
        ]
        found.sort(key=lambda lane: (-lane.waiting, lane.host, lane.pool))
        return [lane for lane in found if lane.waiting > 0]

    async def _rules(self) -> dict[str, PoolRules]:
        stored = await self._link.command("HGETALL", f"{EXITS}rules")
        return {name.decode(): _read_pool(text) for name, text in stored.items()}

    async def _now(self) -> _Now:
        now, ahead = await self.run("exits_clock")
        return _Now(int(now) / 1e6, int(ahead) / 1e6)

    async def run(self, name: str, *args: Argument) -> Any:
        """Run a script on the exits' keys."""
        now = f"{self._clock() * 1e6:.0f}" if self._clock else ""
        return await self._link.run(script(name), [_POOLS], now, *args)


def _lane_state(
    name: str, row: bytes, packed: bytes | None, rules: dict[str, PoolRules], now: float
) -> LaneState:
    pool, _, host = name.rpartition(" ")
    state, tiers = lane_of(packed), policy.tiers(pool, rules)
    return LaneState(
        host=host,
        pool=pool,
        waiting=waiting_of(row),
        tier_pool=tiers[min(state.tier, len(tiers) - 1)],
        is_site_blocking=now < state.site_until,
        starved_s=now - state.starved_at if state.starved_at else 0.0,
    )
