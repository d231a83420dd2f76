"""The Lua scripts of the Redis frontier, put together from their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.drivers.redis.scripts import Script, Scripts
from shoal.frontier.redis.prelude import prelude

SCRIPTS = (
    *("start", "add", "lease", "renew", "finish", "release", "control", "retry_or_purge"),
    *("forget", "stats", "find", "walk", "dead", "leased", "holders", "beat", "collected", "grace"),
    *("remember", "turn"),
)

BY_EXITS = frozenset({"add", "lease", "finish", "release", "retry_or_purge"})
"""Scripts that have another form for crawls with pools, so that other crawls do not pay for it."""

_Libraries = Mapping[str, Sequence[str]]

CARRIED = frozenset({*BY_EXITS, "control", "forget"})
"""Scripts that have another form for clients with a carrier."""
ONLY_CARRIED = ("lows", "admit", "published", "lose", "unsee")
"""Scripts that only clients with a carrier use."""

_LIBRARIES_OF_EXITS = {
    "queue": ("exit_policy", "exits", "identity_policy", "identities", "lanes"),
    "losing": ("lane_losing",),
    "leasing": (
        *("taking_back", "lending", "lane_granting", "lane_starving", "lane_leasing"),
        *("identity_lending", "identity_leasing"),
    ),
    "finishing": ("lane_finishing", "identity_finishing"),
}
_LIBRARIES_OF_CARRIED = {
    "step": ("carrying",),
    "queue": ("carried",),
    "adding": ("carried_adding",),
    "leasing": ("carried_leasing",),
}
"""In the other forms, the libraries that follow each library. What they declare again replaces what
it has declared."""


def _both(first: _Libraries, then: _Libraries) -> _Libraries:
    return {name: (*first.get(name, ()), *then.get(name, ())) for name in {**first, **then}}


_scripts = Scripts("shoal.frontier.redis", prelude)
_scripts_by_exits = Scripts("shoal.frontier.redis", prelude, _LIBRARIES_OF_EXITS)
_carried = Scripts("shoal.frontier.redis", prelude, _LIBRARIES_OF_CARRIED)
_carried_by_exits = Scripts(
    "shoal.frontier.redis", prelude, _both(_LIBRARIES_OF_EXITS, _LIBRARIES_OF_CARRIED)
)


def script(name: str, *, by_exits: bool = False, carried: bool = False) -> Script:
    """A script, with the libraries that its header names, and the declarations of prelude.py. Some
    scripts have other forms: for crawls with pools, for clients with a carrier, and for both."""
    if carried and (name in CARRIED or name in ONLY_CARRIED):
        return (_carried_by_exits if by_exits and name in BY_EXITS else _carried)[name]
    return (_scripts_by_exits if by_exits and name in BY_EXITS else _scripts)[name]


def all_scripts(*, carried: bool = False) -> list[Script]:
    """All scripts that clients with a carrier, or without, load into a server."""
    names = (*SCRIPTS, *ONLY_CARRIED) if carried else SCRIPTS
    by_exits = [script(name, by_exits=True, carried=carried) for name in sorted(BY_EXITS)]
    return [*(script(name, carried=carried) for name in names), *by_exits]
