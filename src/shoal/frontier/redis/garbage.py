"""Deletes the keys of forgotten crawls in small steps, so that no other client has to wait."""

from __future__ import annotations

from shoal.drivers.redis.link import RedisLink
from shoal.frontier.redis.stats import priorities_of

CHUNK = 500
_SINGLE = (
    *("ready", "load", "slow", "failing", "suspects", "held", "due", "delayed", "dead", "died"),
    *("failures", "failures_at", "own_counts"),
    *("dropped", "robots", "workers", "blocked", "holding", "shares"),
    *("kept_out", "lanes", "lane_load", "blocks", "versions", "expired", "jars"),
    *("away", "carried", "outbox", "low", "dry", "own", "routes", "missing", "repaired"),
    *("requests", "foreign"),
)


async def sweep(link: RedisLink, base: str) -> None:
    """Delete the keys of all forgotten crawls of this shard. Safe to do twice."""
    garbage = f"{base}garbage"
    for crawl_id in await link.command("SMEMBERS", garbage):
        prefix = f"{base}{crawl_id.decode()}:"
        await _sweep_hosts(link, prefix)
        await _sweep_chains(link, prefix)
        await _sweep_pools(link, prefix)
        for name in _SINGLE:
            await link.command("UNLINK", prefix + name)
        await link.command("SREM", garbage, crawl_id)


async def _sweep_hosts(link: RedisLink, prefix: str) -> None:
    hosts = f"{prefix}hosts"
    while names := await link.command("HRANDFIELD", hosts, CHUNK):
        rows = await link.command("HMGET", hosts, *names)
        keys = list[str]()
        for name, packed in zip(names, rows, strict=True):
            host = name.decode()
            priorities = await priorities_of(link, prefix, host, packed)
            keys += [
                f"{prefix}{kind}:{priority}:{host}" for priority in priorities for kind in "qt"
            ]
            keys += [f"{prefix}lower:{host}", f"{prefix}alike:{host}"]
        for first in range(0, len(keys), CHUNK):
            await link.command("UNLINK", *keys[first : first + CHUNK])
        await link.command("HDEL", hosts, *names)


async def _sweep_pools(link: RedisLink, prefix: str) -> None:
    for name in await link.command("SMEMBERS", f"{prefix}pools"):
        await link.command("UNLINK", f"{prefix}ready:".encode() + name)
    await link.command("UNLINK", f"{prefix}pools")


async def _sweep_chains(link: RedisLink, prefix: str) -> None:
    chains = f"{prefix}chains"
    while names := await link.command("HRANDFIELD", chains, CHUNK):
        await link.command("UNLINK", *(f"{prefix}chain:".encode() + name for name in names))
        await link.command("HDEL", chains, *names)
