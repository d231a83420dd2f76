"""Extensions that an upper layer adds to a lower one, found as entry points of installed packages.

Scrapy support is added this way: the layers below know that it may exist, and import nothing of it.
Groups, names, and the signature of what each name loads:

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
    """Load the entry point of this name.

    Raises ConfigError if nothing of that name is installed. Importing it may raise MissingExtra.
    """
    # Takes ten milliseconds to import, and most processes never need it.
    from importlib.metadata import entry_points

    found = entry_points(group=group, name=name)
    if not found:
        raise ConfigError(
            f"nothing installed knows {name!r} ({group}): was Shoal updated? Install it again"
        )
    return next(iter(found)).load()
