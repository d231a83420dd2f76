"""The Lua scripts of the Redis frontier, put together from their files."""

from __future__ import annotations

from shoal.drivers.redis.scripts import Script, Scripts
from shoal.frontier.redis.prelude import prelude

SCRIPTS = (
    *("start", "add", "lease", "renew", "finish", "release", "control", "retry_or_purge"),
    *("forget", "stats", "find", "walk", "dead", "holders", "beat", "collected", "grace"),
    "remember",
)

_scripts = Scripts("shoal.frontier.redis", prelude)


def script(name: str) -> Script:
    """A script with the libraries that its header names, and with what prelude.py declares."""
    return _scripts[name]


def all_scripts() -> list[Script]:
    """Those that a server is made to know."""
    return [script(name) for name in SCRIPTS]
