"""Converts a crawl's rules to the numbers that the scripts read."""

from __future__ import annotations

import math

from shoal.config import Rules
from shoal.core.policy import MAX_LOSSES, parse_duration, parse_rate

BLOOM_AUTO_FROM = 10_000_000
"""How many URLs are kept exactly with `seen = "auto"`; further ones go to a Bloom filter."""

BLOOM_LAYERS = 8
"""How many layers share the error rate: enough for 280 million URLs."""


def has_lanes(rules: Rules) -> bool:
    """Whether tasks of the crawl may wait for exits or accounts: see lua/lanes.lua."""
    return bool(rules.pools or rules.sessions)


def numbers_of(rules: Rules, shards: int) -> dict[str, int]:
    """The rules as whole numbers; times in microseconds."""
    rate = parse_rate(rules.rate)
    layer_error = rules.seen_error / BLOOM_LAYERS
    return {
        "shards": shards,
        # Rounded up: a rate is a limit.
        "interval": math.ceil(rate.interval_s * 1e6),
        "auto": int(rate.auto),
        "room": rules.concurrency_per_host,
        # If there are several shards, none knows how many pages the others have.
        "max_pages": (rules.max_pages or 0) if shards == 1 else 0,
        "robots": int(rules.robots),
        "lease": round(rules.lease_s * 1e6),
        "max_losses": min(rules.max_losses, MAX_LOSSES),
        "bloom_from": {"exact": -1, "bloom": 0, "auto": BLOOM_AUTO_FROM // shards}[rules.seen],
        "bloom_bits": math.ceil(1000 * -math.log(layer_error) / math.log(2) ** 2),
        "bloom_hashes": math.ceil(-math.log2(layer_error)),
        "seen_for": round(parse_duration(rules.seen_for) * 1e6) if rules.seen_for else 0,
        **({"most_of_host": most} if (most := rules.max_pages_per_host) else {}),
        **({"most_alike": most} if (most := rules.max_pages_per_shape) else {}),
        **({"pools": 1} if has_lanes(rules) else {}),
        **({"cookies": 1} if rules.cookies != "off" else {}),
    }
