"""The state of exits, in a word and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.core.exit_policy import score_at
from shoal.core.exits import Exit, PoolState

READY, COOLING, OUT = "ready", "cooling", "out"


def exit_state(each: Exit, now: float) -> str:
    """The state of an exit in one word."""
    if each.out_until > now:
        return OUT
    return COOLING if each.cooling else READY


def exits_json(found: Sequence[tuple[PoolState, list[Exit]]], now: float) -> list[dict[str, Any]]:
    """Pools and their exits."""
    return [
        msgspec.to_builtins(state)
        | {"pool": state.rules.name, "listed": [_exit_json(each, now) for each in exits]}
        for state, exits in found
    ]


def _exit_json(each: Exit, now: float) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(each)
    return fields | {
        "state": exit_state(each, now),
        "score": round(score_at(None, each, now), 4),
    }
