"""How far a feed is, in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from shoal.feeds.feeder import Fed
from shoal.runtime.patience import NowAndThen

log = logging.getLogger("shoal")


def line_of(fed: Fed) -> str:
    """How far it is, in one line."""
    return f"{fed.waiting:,} messages wait · {fed.told}"


def logged(about: str, every_s: float) -> Callable[[Fed], object]:
    """Logs a line now and then, but not the same one for days if nothing comes."""
    timer, last = NowAndThen(every_s, at_once=False), ""

    def watch(fed: Fed) -> None:
        nonlocal last
        line = line_of(fed)
        if line != last and timer.is_due():
            last = line
            log.info("%s: %s", about, line)

    return watch
