"""What an upper layer adds to a lower one: entry points of what is installed. Scrapy's part is
added so: the layers below know that there is such a thing, and import nothing of it.

Groups, and what is called under which name:

    shoal.targets        scrapy: the target `scrapy:NAME`: (targets) -> the class of a spider
    shoal.workers        scrapy: the worker process of such a target: (order) -> None, at its end
    shoal.fingerprints   rules.fingerprints: (name) -> a function from tasks to fingerprints
"""

from __future__ import annotations

from functools import cache
from typing import Any

from shoal.errors import ConfigError


@cache
def plugin(group: str, name: str) -> Any:
    """What is installed under this name. Raises ConfigError, and MissingExtra as it likes."""
    # Ten milliseconds to import, which most processes need not wait for.
    from importlib.metadata import entry_points

    found = entry_points(group=group, name=name)
    if not found:
        raise ConfigError(
            f"nothing installed knows {name!r} ({group}): was Shoal updated? Install it again"
        )
    return next(iter(found)).load()
