"""Constants and transitions that all backends of the frontier share. SQL statements and Lua scripts
are generated from them."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.errors import ConfigError
from shoal.frontier.values import Control, CrawlState

RECLAIM_BATCH = 500
"""How many due retries, and how many expired leases, are taken back at a time."""
DEAD_AT_ONCE = 100
"""How many dead tasks are read, retried or purged at a time. Each may have a long traceback, and
other clients must not wait for long."""
SUSPECTS_SEEN = 50
"""How many suspects are looked at to find one whose host may be hit."""
WITHHELD_SEEN = 50
"""How many hosts are looked at to find one that has work to give, where other workers have been
given their room."""

MOST_SHAPES = 1_000
"""How many shapes of addresses are kept per host. Shapes seen only once make room for others."""
MOST_TRAPS = 1_000
"""How many traps, shapes of which links were kept out, are stored and shown."""

POISON = "poison: {} workers died with it"
"""The reason of a dead task whose workers died, one after the other."""
PURGED = "purged; was dead: "
"""The reason of a dead task that was purged; the reason why it was dead follows."""
DROPPED_BY_CANCEL = "cancelled"
"""The reason of a task that had not ended when its crawl was cancelled."""
HELD_BACK_REASON = "waits for an earlier task of chain '{}'"
"""Why a task of a chain is held back though its host may be hit."""

SAMPLE_EVERY_S = 10.0
"""A crawl's progress is noted at most this often. Two notes are kept: see `recent_rate`."""

_LIVE = [state for state in CrawlState if state.live]

TRANSITIONS: Mapping[Control, Mapping[CrawlState, CrawlState]] = {
    Control.SEAL: {state: state for state in CrawlState},
    Control.PAUSE: dict.fromkeys(_LIVE, CrawlState.PAUSED),
    Control.RESUME: dict.fromkeys(_LIVE, CrawlState.RUNNING),
    Control.CANCEL: {
        state: CrawlState.CANCELLED for state in CrawlState if state is not CrawlState.FINISHED
    },
}
"""For each action, the states in which it is possible, and the state that each leads to."""


def check_name(crawl: str) -> None:
    """Whether a new crawl may be called so. Raises ConfigError. Browsers cannot ask for the page of
    `..`, PostgreSQL cannot keep a NUL, and an empty name is a mistake of a script."""
    if crawl in ("", ".", "..") or "\0" in crawl:
        raise ConfigError(f"a crawl cannot be named {crawl!r}")


def steered(crawl: str, state: CrawlState, action: Control) -> CrawlState:
    """The state that an action leads to. Raises ConfigError if it is not possible in this state."""
    if state not in TRANSITIONS[action]:
        raise ConfigError(f"cannot {action} crawl '{crawl}': it is {state}")
    return TRANSITIONS[action][state]


def recent_rate(
    tried: int, until: float, started_at: float | None, earlier: tuple[float, int]
) -> float:
    """Pages per second since the note before the last one, or since the start if there is none.
    `earlier` is the time of that note and the number of pages at that time."""
    since, tried_then = earlier if earlier[0] else (started_at or until, 0)
    return max(tried - tried_then, 0) / (until - since) if until > since else 0.0
