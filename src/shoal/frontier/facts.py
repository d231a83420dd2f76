"""What all backends of the frontier agree on. SQL statements and Lua scripts are made from it."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.errors import ConfigError
from shoal.frontier.values import Control, CrawlState

RECLAIM_BATCH = 500
"""Retries that are due and leases that have expired, of each so many are taken back at a time."""
DEAD_AT_ONCE = 100
"""So many dead tasks are looked at, retried or purged at a time. Each may have a long traceback,
and others must not wait for long."""
SUSPECTS_SEEN = 50
"""So many suspects are looked at for one whose host may be hit."""
WITHHELD_SEEN = 50
"""So many hosts are looked at for one that gives something, where others have their room."""

MOST_SHAPES = 1_000
"""So many shapes of addresses are kept of a host. Those that were met once make room for others."""
MOST_TRAPS = 1_000
"""So many shapes are told of which links were kept out."""

POISON = "poison: {} workers died with it"
"""Why a task is dead that took worker after worker."""
PURGED = "purged; was dead: "
"""Why a task was dropped that had been dead; why it was dead follows."""
DROPPED_BY_CANCEL = "cancelled"
"""Why a task was dropped that had not ended when its crawl was cancelled."""
HELD_BACK_REASON = "waits for an earlier task of chain '{}'"
"""Why a task of a chain waits though its host may be hit."""

SAMPLE_EVERY_S = 10.0
"""A crawl's progress is noted so often at most. Two notes are kept: see `recent_rate`."""

_LIVE = [state for state in CrawlState if state.live]

TRANSITIONS: Mapping[Control, Mapping[CrawlState, CrawlState]] = {
    Control.SEAL: {state: state for state in CrawlState},
    Control.PAUSE: dict.fromkeys(_LIVE, CrawlState.PAUSED),
    Control.RESUME: dict.fromkeys(_LIVE, CrawlState.RUNNING),
    Control.CANCEL: {
        state: CrawlState.CANCELLED for state in CrawlState if state is not CrawlState.FINISHED
    },
}
"""Which state each action leads to, from those it fits."""


def check_name(crawl: str) -> None:
    """Whether a new crawl may be called so. Raises ConfigError. Browsers cannot ask for the page of
    `..`, PostgreSQL cannot keep a NUL, and an empty name is a mistake of a script."""
    if crawl in ("", ".", "..") or "\0" in crawl:
        raise ConfigError(f"a crawl cannot be named {crawl!r}")


def steered(crawl: str, state: CrawlState, action: Control) -> CrawlState:
    """The state that an action leads to. Raises ConfigError where it does not fit."""
    if state not in TRANSITIONS[action]:
        raise ConfigError(f"cannot {action} crawl '{crawl}': it is {state}")
    return TRANSITIONS[action][state]


def recent_rate(
    tried: int, until: float, started_at: float | None, earlier: tuple[float, int]
) -> float:
    """Pages a second: since the last note but one (its moment, and how many it was then), or, while
    there is none, since the start."""
    since, tried_then = earlier if earlier[0] else (started_at or until, 0)
    return max(tried - tried_then, 0) / (until - since) if until > since else 0.0
