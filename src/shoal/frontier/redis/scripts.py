"""The Lua scripts of the Redis frontier, put together from their files."""

from __future__ import annotations

from shoal.drivers.redis.scripts import Script, Scripts
from shoal.frontier.redis.prelude import prelude

SCRIPTS = (
    *("start", "add", "lease", "renew", "finish", "release", "control", "retry_or_purge"),
    *("forget", "stats", "find", "walk", "dead", "holders", "beat", "collected", "grace"),
    "remember",
)

BY_EXITS = frozenset({"add", "lease", "finish", "release", "retry_or_purge"})
"""Scripts that have another form, for crawls with pools. Others need not know what that costs."""

_LIBRARIES_OF_EXITS = {
    "queue": ("exit_policy", "exits", "lanes"),
    "losing": ("lane_losing",),
    "leasing": ("lending", "lane_leasing"),
    "finishing": ("lane_finishing",),
}
"""In that other form, libraries that follow others: what they declare again takes its place."""

_scripts = Scripts("shoal.frontier.redis", prelude)
_scripts_by_exits = Scripts("shoal.frontier.redis", prelude, _LIBRARIES_OF_EXITS)


def script(name: str, *, by_exits: bool = False) -> Script:
    """A script with the libraries that its header names, and with what prelude.py declares. Some
    have another form for crawls with pools."""
    return (_scripts_by_exits if by_exits and name in BY_EXITS else _scripts)[name]


def all_scripts() -> list[Script]:
    """Those that a server is made to know."""
    return [*map(script, SCRIPTS), *(script(name, by_exits=True) for name in sorted(BY_EXITS))]
