"""Names of keys on Redis, and how a crawl is spread over shards."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from shoal.core.urls import digest

CRAWLS = "shoal:crawls"
"""The set of all crawls."""

EXITS = "shoal:{exits}:"
"""What the keys of exits begin with: all crawls share them."""

BY_EXITS = "exits"
"""In the place of the number of a crawl's shards: it has one, in the slot of the exits."""


def key_name(crawl: str) -> str:
    """A crawl's name as it is in keys: braces mean something to a cluster."""
    return crawl.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def inbox_key(crawl: str) -> str:
    """The list into which anybody may push seeds."""
    return f"shoal:{key_name(crawl)}:inbox"


def rejected_key(crawl: str) -> str:
    """The list of what was no seed."""
    return f"shoal:{key_name(crawl)}:rejected"


def shards_key(crawl: str) -> str:
    """How many shards the crawl has. Only in a cluster."""
    return f"shoal:{key_name(crawl)}:shards"


@lru_cache(maxsize=64)
def tag_by_exits(crawl: str) -> str:
    """The tag of a crawl's only shard, if that is to lie in the slot of the exits: a script cannot
    cross slots. It takes some 16,000 attempts."""
    name, wanted = key_name(crawl), key_slot(EXITS.encode())
    attempts = (f"{name}/exits/{number}" for number in count())
    return next(tag for tag in attempts if key_slot(tag.encode()) == wanted)


def tags(crawl: str, shards: int) -> list[str]:
    """The tags of a crawl's shards. Each lies in its own part of a cluster's slots, which masters
    usually share in the same way: so every master gets its share of the crawl."""
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
