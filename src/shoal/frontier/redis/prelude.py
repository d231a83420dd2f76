"""What the Lua scripts know from Python, as Lua: it stands before each of them.

Constants are fields of POLICY, times in microseconds. Forms of records are functions: written out,
because a loop over the names of the fields takes twice as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.core import policy, sharing
from shoal.core.counters import COUNTERS, PAGE_COUNTERS
from shoal.frontier import facts
from shoal.frontier.clock import JUMP_S
from shoal.frontier.redis import packing
from shoal.frontier.redis.stats import HOST_NUMBERS, MORE, PLACED
from shoal.frontier.values import CrawlState

_CONSTANT = re.compile(r"\bPOLICY\.(\w+)")

BLOOM_FIRST = 5 * 2**19 - 64
"""Bytes of the first layer of a Bloom filter, enough for 1.1 million URLs; each further one is
twice as long. With what Redis puts before a string, they fill the blocks that jemalloc has."""
BLOOM_MOST = 2**7 * BLOOM_FIRST
"""Bytes of its largest layers: twice as many would be too long for a string."""

SHARD_TRANSITIONS: Mapping[str, Mapping[CrawlState, CrawlState]] = {
    "finish": {state: CrawlState.FINISHED for state in CrawlState if state.live},
    "wake": {CrawlState.FINISHED: CrawlState.RUNNING},
}
"""What is done to a shard of several, beside what `facts.TRANSITIONS` has for the whole crawl."""


def prelude(script: str) -> str:
    """What a script uses of all this, as its beginning. It is made anew in each run, so the rest is
    left out. Raises KeyError for a constant that is not there."""
    constants = _times() | _numbers()
    used = dict.fromkeys(_CONSTANT.findall(script))
    tables = _tables() | {"POLICY": {name: constants[name] for name in used}}
    declared = [f"local {name} = {_lua(value)}" for name, value in tables.items() if name in script]
    return "\n".join([*declared, *(_host() if "host_of" in script else ())])


def _tables() -> dict[str, Any]:
    return {
        "TEXTS": {"poison": facts.POISON.replace("{}", "%d"), "purged": facts.PURGED},
        "TRANSITIONS": {**facts.TRANSITIONS} | {**SHARD_TRANSITIONS},
        "LIVE": {state: True for state in CrawlState if state.live},
        "OVER": {state: True for state in CrawlState if state.over},
        "PLACED": PLACED,
        "NAMED": [name for name in COUNTERS if name not in PLACED],
        "PAGE_COUNTERS": PAGE_COUNTERS,
        "NEW_HOST": list(HOST_NUMBERS.values()),
        "MORE": MORE,
    }


def _times() -> dict[str, int]:
    seconds = {
        "slack": policy.SEND_SLACK_S,
        "sample_every": facts.SAMPLE_EVERY_S,
        "clock_jump": JUMP_S,
        "pushback_first": policy.PUSHBACK_FIRST_S,
        "pushback_limit": policy.PUSHBACK_LIMIT_S,
        "penalty_floor": policy.PENALTY_FLOOR_S,
        "auto_start": policy.AUTO_START_S,
        "auto_floor": policy.AUTO_FLOOR_S,
        "probe_first": policy.PROBE_FIRST_S,
        "probe_limit": policy.PROBE_LIMIT_S,
        "turn": sharing.TURN_S,
        "want": sharing.WANT_S,
        "share_wait": sharing.SHARE_WAIT_S,
    }
    return {name: round(value * 1e6) for name, value in seconds.items()}


def _numbers() -> dict[str, float]:
    return {
        "recovery_factor": policy.RECOVERY_FACTOR,
        "latency_weight": policy.LATENCY_WEIGHT,
        "refusals_in_a_row": policy.REFUSALS_IN_A_ROW,
        "breaker_after": policy.BREAKER_AFTER,
        "breaker_probes": policy.BREAKER_PROBES,
        "suspect_after": policy.SUSPECT_AFTER,
        "max_tries": policy.MAX_TRIES,
        "max_losses": policy.MAX_LOSSES,
        "ahead_per_share": sharing.AHEAD_PER_SHARE,
        "reclaim_batch": facts.RECLAIM_BATCH,
        "suspects_seen": facts.SUSPECTS_SEEN,
        "withheld_seen": facts.WITHHELD_SEEN,
        "bloom_first": BLOOM_FIRST,
        "bloom_most": BLOOM_MOST,
        "chained": packing.CHAINED,
        "no_turn": packing.NO_TURN,
        "next_turn": packing.NEXT,
    }


def _host() -> list[str]:
    """A host as a table of its numbers by name, and as a list of them."""
    fields = ", ".join(f"{name} = v[{at}]" for at, name in enumerate(HOST_NUMBERS, 1))
    listed = ", ".join(f"host.{name}" for name in HOST_NUMBERS)
    return [
        f"local function host_of(name, v) return {{name = name, {fields}}} end",
        f"local function numbers_of(host) return {{{listed}}} end",
    ]


def _lua(value: Any) -> str:
    """A value as Lua writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {_lua(it)}' for name, it in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"{{{', '.join(map(_lua, value))}}}"
    return str(value)
