"""What other packages, and upper layers of ours, add to a lower one: entry points of what is
installed. Scrapy's part is added so: nothing below it knows it by name.

Groups, and what is called under which name:

    shoal.targets        `NAME:...` as a target: (targets) -> the class of a spider
    shoal.workers        the same target's worker process: (order) -> None, when it has ended
    shoal.fingerprints   rules.fingerprints: (name) -> a function from tasks to fingerprints
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from shoal.errors import ConfigError


@cache
def plugin(group: str, name: str) -> Any:
    """What is installed under this name. Raises ConfigError, and MissingExtra as it likes."""
    found = entry_points(group=group, name=name)
    if not found:
        raise ConfigError(f"nothing is installed that knows {name!r} ({group})")
    return next(iter(found)).load()
