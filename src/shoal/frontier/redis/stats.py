"""Statistics of a crawl on Redis: those of its shards, added up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.config import read_rules
from shoal.drivers.redis.link import RedisLink
from shoal.frontier.values import CrawlState, Host, Stats

_COUNTERS = (
    *("added", "duplicates", "filtered", "waiting", "delayed", "leased", "done", "dead"),
    *("dropped", "retries", "lost", "items", "rejected", "body_bytes", "sent", "blocked"),
    "unchanged",
)
HOST_NUMBERS = (
    *("waiting", "suspects", "leased", "next", "penalty", "pushed", "crawl_delay", "robots_at"),
    *("robots_until", "done", "failed", "failures", "broken_at", "latency"),
    *("ready", "load", "slow", "failing"),
)
"""What a host's packed form begins with: see lua/hosts.lua."""
MORE = -(2**40)
"""The last of its priorities, if there are more."""

_read_numbers = msgspec.msgpack.Decoder(list[int]).decode


def stats_of(crawl: str, shards: Sequence[dict[str, str]]) -> Stats:
    """The statistics of a crawl, of what its shards count. Its state is the first one's."""
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
        **{name: sum(int(shard.get(name, 0)) for shard in shards) for name in _COUNTERS},
    )


async def priorities_of(link: RedisLink, prefix: str, host: str, packed: bytes) -> list[int]:
    """The priorities for which a host has a queue, of its packed form and what that leaves out."""
    kept = _read_numbers(packed)[len(HOST_NUMBERS) :]
    if not kept or kept[-1] != MORE:
        return kept
    lower = await link.command("ZRANGE", f"{prefix}lower:{host}", 0, -1)
    return kept[:-1] + [int(priority) for priority in lower]


def ahead_of(shard: dict[str, str]) -> float:
    """How far a shard's clock is ahead of its server's: see clock.py."""
    return int(shard["ahead"]) / 1e6


def host_of(name: str, packed: bytes, ahead_s: float, *, is_cancelled: bool) -> Host:
    """A host, of its packed form. Of a cancelled crawl nothing waits any more."""
    numbers = dict(zip(HOST_NUMBERS, _read_numbers(packed), strict=False))
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


def _moment(fields: dict[str, str], name: str) -> float | None:
    return int(fields[name]) / 1e6 if name in fields else None


def _recent_rate(shard: dict[str, str]) -> float:
    now = int(shard["now"])
    since, tried_then = int(shard.get("earlier_at", 0)), int(shard.get("earlier_done", 0))
    if not since:
        since, tried_then = int(shard.get("started_at", now)), 0
    until = int(shard["finished_at"]) + int(shard["ahead"]) if "finished_at" in shard else now
    tried = max(int(shard.get("done", 0)) + int(shard.get("dead", 0)) - tried_then, 0)
    return tried / ((until - since) / 1e6) if until > since else 0.0
