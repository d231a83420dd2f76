"""Names of keys on Redis, and how a crawl is spread over shards."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from shoal.core.urls import digest

CRAWLS = "shoal:crawls"
"""The set of all crawls."""

EXITS = "shoal:{exits}:"
"""The prefix of the keys of exits, which all crawls share."""

BY_EXITS = "exits"
"""Stands in place of the number of shards if the crawl has one shard, in the slot of the exits."""


def key_name(crawl: str) -> str:
    """A crawl's name as it is written in keys: braces have a meaning in a cluster."""
    return crawl.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def inbox_key(crawl: str) -> str:
    """The list into which any program may push seeds."""
    return f"shoal:{key_name(crawl)}:inbox"


def rejected_key(crawl: str) -> str:
    """The list of entries of the inbox that were rejected."""
    return f"shoal:{key_name(crawl)}:rejected"


def shards_key(crawl: str) -> str:
    """The key with the number of the crawl's shards. Only used in a cluster."""
    return f"shoal:{key_name(crawl)}:shards"


@lru_cache(maxsize=64)
def tag_by_exits(crawl: str) -> str:
    """The tag of the only shard of a crawl with pools. It lies in the slot of the exits, because a
    script cannot use keys of several slots. Finding it takes some 16,000 attempts."""
    name, wanted = key_name(crawl), key_slot(EXITS.encode())
    attempts = (f"{name}/exits/{number}" for number in count())
    return next(tag for tag in attempts if key_slot(tag.encode()) == wanted)


def tags(crawl: str, shards: int) -> list[str]:
    """The tags of a crawl's shards. Each lies in its own part of the cluster's slots. Masters
    usually divide the slots in the same way, so each gets its share of the crawl."""
    name = key_name(crawl)
    if shards == 1:
        return [name]
    return [_tag_in_part(name, number, shards) for number in range(shards)]


def _tag_in_part(name: str, number: int, shards: int) -> str:
    attempt = 0
    while True:
        tag = f"{name}/{number + 1}of{shards}/{attempt}"
        if key_slot(tag.encode()) * shards // REDIS_CLUSTER_HASH_SLOTS == number:
            return tag
        attempt += 1


def shard_of(site: str, shards: int) -> int:
    """Which shard a host belongs to."""
    return int.from_bytes(digest(site)[:4]) % shards if shards > 1 else 0
