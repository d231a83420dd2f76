"""Generates the beginning of each Lua script: what the scripts take over from Python.

Constants are fields of POLICY, with times in microseconds. The forms of records are functions, with
each field written out, because a loop over the names of the fields takes twice as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.core import exit_policy, identity_policy, own_counts, policy, sharing
from shoal.core.counters import COUNTERS, PAGE_COUNTERS
from shoal.core.failures import FailureKind
from shoal.frontier import facts
from shoal.frontier.clock import JUMP_S
from shoal.frontier.redis import packing, windows
from shoal.frontier.redis.exit_forms import (
    RECORDS,
    UNKNOWN_POOL,
    starved_head,
    starved_words,
    unusable_words,
)
from shoal.frontier.redis.layout import LAYOUT
from shoal.frontier.redis.names import EXITS
from shoal.frontier.redis.stats import HOST_NUMBERS, MORE, PLACED
from shoal.frontier.values import CrawlState

_CONSTANT = re.compile(r"\bPOLICY\.(\w+)")

BLOOM_FIRST = 5 * 2**19 - 64
"""Bytes of the first layer of a Bloom filter, enough for 1.1 million URLs; each further layer is
twice as long. Together with the header that Redis puts before a string, a layer exactly fills a
block of jemalloc."""
BLOOM_MOST = 2**7 * BLOOM_FIRST
"""Bytes of the largest layers of a Bloom filter: twice as many would be too long for a string."""

EXITS_WOKEN = 500
"""How many exits of a pool that become ready are noted as such at a time."""

SHARD_TRANSITIONS: Mapping[str, Mapping[CrawlState, CrawlState]] = {
    "finish": {state: CrawlState.FINISHED for state in CrawlState if state.live},
    "wake": {CrawlState.FINISHED: CrawlState.RUNNING},
}
"""Actions on one of several shards, beside the actions on a whole crawl in `facts.TRANSITIONS`."""


def prelude(script: str) -> str:
    """The declarations that a script uses, as its beginning. The server executes them in each run,
    so all others are left out. Raises KeyError for an unknown constant."""
    constants = _times() | _numbers()
    used = dict.fromkeys(_CONSTANT.findall(script))
    tables = _tables() | {"POLICY": {name: constants[name] for name in used}}
    declared = [f"local {name} = {_lua(value)}" for name, value in tables.items() if name in script]
    records = [line for kind in RECORDS if f"{kind}_of(" in script for line in _record(kind)]
    return "\n".join([*declared, *(_host() if "host_of" in script else ()), *records])


def _tables() -> dict[str, Any]:
    return {
        "TEXTS": {
            "poison": facts.POISON.replace("{}", "%d"),
            "purged": facts.PURGED,
            "others": own_counts.OTHERS,
        },
        "KINDS": {kind.value: kind.value for kind in FailureKind},
        "STARVED": {**starved_words(), "head": starved_head("%s", UNKNOWN_POOL.timeout_s)},
        "UNUSABLE": unusable_words(),
        "EXITS_BASE": EXITS,
        **{f"NEW_{kind.upper()}": list(fields.values()) for kind, fields in RECORDS.items()},
        "TRANSITIONS": {**facts.TRANSITIONS} | {**SHARD_TRANSITIONS},
        "LIVE": {state: True for state in CrawlState if state.live},
        "OVER": {state: True for state in CrawlState if state.over},
        "PLACED": PLACED,
        "NAMED": [name for name in COUNTERS if name not in PLACED],
        "PAGE_COUNTERS": PAGE_COUNTERS,
        "NEW_HOST": list(HOST_NUMBERS.values()),
        "MORE": MORE,
        "DRY": windows.DRY,
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
        "half_life": exit_policy.HALF_LIFE_S,
        "cool_first": exit_policy.COOL_FIRST_S,
        "cool_limit": exit_policy.COOL_LIMIT_S,
        "unreached_first": exit_policy.UNREACHED_FIRST_S,
        "unreached_limit": exit_policy.UNREACHED_LIMIT_S,
        "out_first": exit_policy.OUT_FIRST_S,
        "out_limit": exit_policy.OUT_LIMIT_S,
        "agree_time": exit_policy.AGREE_S,
        "window": exit_policy.WINDOW_S,
        "site": exit_policy.SITE_S,
        "probe_every": exit_policy.PROBE_EVERY_S,
        "busy_wait": exit_policy.BUSY_WAIT_S,
        "unseen": exit_policy.UNSEEN_S,
        "pairs_kept": exit_policy.PAIR_KEPT_S,
        "sweep_every": exit_policy.SWEEP_EVERY_S,
        "pool_timeout": UNKNOWN_POOL.timeout_s,
        "banned": identity_policy.BANNED_S,
        "lost_rest": identity_policy.LOST_REST_S,
        "logged_out_rank": identity_policy.LOGGED_OUT_RANK_S,
        "on_the_way": windows.ON_THE_WAY_S,
        "carry_wait": windows.CARRY_WAIT_S,
        "carry_wait_long": windows.CARRY_WAIT_LONG_S,
    }
    return {name: _micro(value) for name, value in seconds.items()}


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)


def _numbers() -> dict[str, float | list[int]]:
    return {
        "login_rests": [_micro(rest_s) for rest_s in identity_policy.RESTS_S],
        "recovery_factor": policy.RECOVERY_FACTOR,
        "latency_weight": policy.LATENCY_WEIGHT,
        "refusals_in_a_row": policy.REFUSALS_IN_A_ROW,
        "breaker_after": policy.BREAKER_AFTER,
        "breaker_probes": policy.BREAKER_PROBES,
        "suspect_after": policy.SUSPECT_AFTER,
        "max_tries": policy.MAX_TRIES,
        "max_losses": policy.MAX_LOSSES,
        "ahead_per_share": sharing.AHEAD_PER_SHARE,
        "max_own_counts": own_counts.MAX_NAMES,
        "reclaim_batch": facts.RECLAIM_BATCH,
        "suspects_seen": facts.SUSPECTS_SEEN,
        "most_shapes": facts.MOST_SHAPES,
        "most_traps": facts.MOST_TRAPS,
        "withheld_seen": facts.WITHHELD_SEEN,
        "prior": exit_policy.PRIOR,
        "max_level": exit_policy.MAX_LEVEL,
        "faults_out": exit_policy.FAULTS_OUT,
        "agree": exit_policy.AGREE,
        "window_answers": exit_policy.WINDOW_ANSWERS,
        "blocked_exits": exit_policy.BLOCKED_EXITS,
        "good_probes": exit_policy.GOOD_PROBES,
        "max_tier": exit_policy.MAX_TIER,
        "exits_seen": exit_policy.EXITS_SEEN,
        "tasks_seen": exit_policy.TASKS_SEEN,
        "lanes_seen": exit_policy.LANES_SEEN,
        "starved_batch": exit_policy.STARVED_BATCH,
        "max_blocks": policy.MAX_BLOCKS,
        "exits_woken": EXITS_WOKEN,
        "bloom_first": BLOOM_FIRST,
        "bloom_most": BLOOM_MOST,
        "chained": packing.CHAINED,
        "no_turn": packing.NO_TURN,
        "next_turn": packing.NEXT,
        "layout": LAYOUT,
        "own_from": windows.OWN_FROM,
        "own_name": windows.OWN_NAME,
        "most_own": windows.MOST_OWN,
        "deep": windows.DEEP,
    }


def _record(kind: str) -> list[str]:
    """Lua functions that convert a record of exit_forms.py from a list of its values to a table of
    them by name, and back."""
    fields = ", ".join(f"{name} = v[{at}]" for at, name in enumerate(RECORDS[kind], 1))
    listed = ", ".join(f"it.{name}" for name in RECORDS[kind])
    return [
        f"local function {kind}_of(v) return {{{fields}}} end",
        f"local function {kind}_values(it) return {{{listed}}} end",
    ]


def _host() -> list[str]:
    """Lua functions that convert a host from a list of its numbers to a table of them by name, and
    back."""
    fields = ", ".join(f"{name} = v[{at}]" for at, name in enumerate(HOST_NUMBERS, 1))
    listed = ", ".join(f"host.{name}" for name in HOST_NUMBERS)
    return [
        f"local function host_of(name, v) return {{name = name, {fields}}} end",
        f"local function numbers_of(host) return {{{listed}}} end",
    ]


def _lua(value: Any) -> str:
    """Write a value as Lua source."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {_lua(it)}' for name, it in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"{{{', '.join(map(_lua, value))}}}"
    return str(value)
