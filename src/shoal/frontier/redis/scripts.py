"""The Lua scripts of the Redis frontier, put together from their files."""

from __future__ import annotations

from shoal.core import policy
from shoal.drivers.redis.scripts import Script, Scripts
from shoal.frontier.clock import JUMP_S

SCRIPTS = (
    *("start", "add", "lease", "renew", "finish", "release", "control", "settle_dead", "forget"),
    *("stats", "find", "walk", "dead", "holders", "beat", "collected", "grace", "remember"),
)

SAMPLE_EVERY_S = 10.0
BLOOM_FIRST = 5 * 2**19 - 64
"""Bytes of the first layer of a Bloom filter, enough for 1.1 million URLs; each further one is
twice as long. With what Redis puts before a string, they fill the blocks that jemalloc has."""
BLOOM_MOST = 2**7 * BLOOM_FIRST
"""Bytes of its largest layers: twice as many would be too long for a string."""


def _policy() -> str:
    """The constants of policy.py as Lua: times in microseconds."""
    times = {
        "slack": policy.SEND_SLACK_S,
        "sample_every": SAMPLE_EVERY_S,
        "clock_jump": JUMP_S,
        "pushback_first": policy.PUSHBACK_FIRST_S,
        "pushback_limit": policy.PUSHBACK_LIMIT_S,
        "penalty_floor": policy.PENALTY_FLOOR_S,
        "auto_start": policy.AUTO_START_S,
        "auto_floor": policy.AUTO_FLOOR_S,
        "probe_first": policy.PROBE_FIRST_S,
        "probe_limit": policy.PROBE_LIMIT_S,
    }
    numbers = {
        "recovery_factor": policy.RECOVERY_FACTOR,
        "latency_weight": policy.LATENCY_WEIGHT,
        "refusals_in_a_row": policy.REFUSALS_IN_A_ROW,
        "breaker_after": policy.BREAKER_AFTER,
        "breaker_probes": policy.BREAKER_PROBES,
        "bloom_first": BLOOM_FIRST,
        "bloom_most": BLOOM_MOST,
    }
    pairs = [f"{name} = {round(value * 1e6)}" for name, value in times.items()]
    pairs += [f"{name} = {value}" for name, value in numbers.items()]
    return f"local POLICY = {{{', '.join(pairs)}}}"


_scripts = Scripts("shoal.frontier.redis", _policy)


def script(name: str) -> Script:
    """A script with the libraries that its header names, and with the constants of policy.py."""
    return _scripts[name]


def all_scripts() -> list[Script]:
    """Those that a server is made to know."""
    return [script(name) for name in SCRIPTS]
