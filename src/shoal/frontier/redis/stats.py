"""The statistics of a crawl on Redis: the counts of its shards, added up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import msgspec

from shoal.config import read_rules
from shoal.core.counters import COUNTERS
from shoal.core.failures import FailureKind, kind_named
from shoal.core.own_counts import added
from shoal.drivers.redis.link import RedisLink
from shoal.frontier.facts import recent_rate
from shoal.frontier.values import CrawlState, Host, Stats

PLACED = (
    *("added", "duplicates", "filtered", "waiting", "delayed", "leased", "done", "dead", "dropped"),
    *("retries", "lost", "items", "rejected", "body_bytes", "sent", "blocked"),
    *("sample_at", "sample_done", "earlier_at", "earlier_done", "unchanged", "turns"),
    *("latest", "ahead"),
)
"""The counters with which a shard's packed counts begin. Servers have crawls in this form, so it
must not change: counters that are declared later are stored behind these, with their names. See
lua/step.lua."""
HOST_NUMBERS = {
    **dict.fromkeys(("waiting", "suspects", "leased", "next", "penalty", "pushed"), 0),
    **dict.fromkeys(("crawl_delay", "robots_at", "robots_until", "done", "failed"), 0),
    **dict.fromkeys(("failures", "broken_at", "latency"), 0),
    # Its scores in sorted sets; -1: it is in none.
    **{"ready": -1, "load": -1, "slow": -1, "failing": 0},
}
"""The numbers with which a host's packed form begins, in this order, and their values in a new
host."""
FAILED = "failed "
"""The prefix of a kind of failure in the answer of stats.lua."""
OWN = "own "
"""The prefix of a spider's own counter in the answer of stats.lua."""
MORE = -(2**40)
"""Stands last among a host's priorities if lua/hosts.lua keeps further ones elsewhere."""
HOSTS_AT_ONCE = 500
"""So many hosts are read with one command. Their failures hold Redis up for a millisecond."""

read_numbers = msgspec.msgpack.Decoder(list[int]).decode


def stats_of(crawl: str, shards: Sequence[dict[str, str]]) -> Stats:
    """The statistics of a crawl, from the counts of its shards. Its state is that of the first."""
    first = shards[0]
    return Stats(
        crawl=crawl,
        state=CrawlState(first["state"]),
        rules=read_rules(first["rules"]),
        created_at=_moment(first, "created_at") or 0.0,
        bloom=any(int(shard["bloom"]) for shard in shards),
        started_at=_moment(first, "started_at"),
        finished_at=_moment(first, "finished_at"),
        pages_per_s=sum(map(_recent_rate, shards)),
        failures_by_kind=_failures(shards),
        own_counts=added(map(_own_counts, shards)),
        **{name: sum(int(shard.get(name, 0)) for shard in shards) for name in COUNTERS},
    )


async def priorities_of(link: RedisLink, prefix: str, host: str, packed: bytes) -> list[int]:
    """The priorities for which a host has a queue, from its packed form and, if that has only some
    of them, from Redis."""
    kept = read_numbers(packed)[len(HOST_NUMBERS) :]
    if not kept or kept[-1] != MORE:
        return kept
    lower = await link.command("ZRANGE", f"{prefix}lower:{host}", 0, -1)
    return kept[:-1] + [int(priority) for priority in lower]


def ahead_of(shard: dict[str, str]) -> float:
    """How far a shard's clock is ahead of its server's: see clock.py."""
    return int(shard["ahead"]) / 1e6


def waiting_of(packed: bytes | None) -> int:
    """How many tasks wait for a host, or in a lane, from its packed form."""
    return read_numbers(packed)[0] if packed else 0


def host_of(name: str, packed: bytes, ahead_s: float, *, is_cancelled: bool) -> Host:
    """Read a host from its packed form. In a cancelled crawl, nothing waits and nothing is
    leased."""
    numbers = dict(zip(HOST_NUMBERS, read_numbers(packed), strict=False))
    return Host(
        host=name,
        waiting=0 if is_cancelled else numbers["waiting"],
        leased=0 if is_cancelled else numbers["leased"],
        done=numbers["done"],
        failed=numbers["failed"],
        next_at=max(numbers["next"] / 1e6 - ahead_s, 0.0),
        penalty_s=numbers["penalty"] / 1e6,
        crawl_delay_s=numbers["crawl_delay"] / 1e6,
        latency_s=numbers["latency"] / 1e6,
        failures=numbers["failures"],
    )


def _failures(shards: Sequence[dict[str, str]]) -> dict[FailureKind, int]:
    """The failures of all shards by kind. Kinds that only a later version knows are added up."""
    found: dict[FailureKind, int] = {}
    for shard in shards:
        for name, tries in shard.items():
            if name.startswith(FAILED):
                kind = kind_named(name.removeprefix(FAILED))
                found[kind] = found.get(kind, 0) + int(tries)
    return found


def _own_counts(shard: dict[str, str]) -> dict[str, int]:
    return {n.removeprefix(OWN): int(times) for n, times in shard.items() if n.startswith(OWN)}


async def note_failures(link: RedisLink, prefix: str, hosts: Sequence[Host]) -> None:
    """Set the number of failed tries of each host, by kind."""
    kinds = list(FailureKind)
    for first in range(0, len(hosts), HOSTS_AT_ONCE):
        part = hosts[first : first + HOSTS_AT_ONCE]
        names = [f"{kind} {host.host}" for host in part for kind in kinds]
        told = await link.command("HMGET", f"{prefix}failures_at", *names)
        for number, host in enumerate(part):
            own = told[number * len(kinds) :][: len(kinds)]
            tries = zip(kinds, own, strict=True)
            host.failures_by_kind = {kind: int(count) for kind, count in tries if count}


def _moment(fields: dict[str, str], name: str) -> float | None:
    return int(fields[name]) / 1e6 if name in fields else None


def _recent_rate(shard: dict[str, str]) -> float:
    ended_at = _moment(shard, "finished_at")
    until = ended_at + ahead_of(shard) if ended_at else int(shard["now"]) / 1e6
    earlier = int(shard["earlier_at"]) / 1e6, int(shard["earlier_done"])
    tried = int(shard["done"]) + int(shard["dead"])
    return recent_rate(tried, until, _moment(shard, "started_at"), earlier)


class Outside(NamedTuple):
    """A block that is with the carrier, as lua/carried.lua packs it."""

    host: str
    priority: int
    tasks: int
    is_own: int
    at: float
    """When it left, in microseconds."""


async def all_outside(link: RedisLink, prefix: str) -> AsyncIterator[tuple[bytes, Outside]]:
    """All blocks of a crawl that are with the carrier, with their ids; some may occur twice."""
    cursor = b"0"
    while True:
        cursor, found = await link.command("HSCAN", f"{prefix}carried", cursor, "COUNT", 1000)
        for block_id, packed in found.items():
            yield block_id, _read_outside(packed)
        if int(cursor) == 0:
            return


_read_outside = msgspec.msgpack.Decoder(Outside).decode
