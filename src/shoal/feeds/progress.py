"""Logs the progress of a feed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from shoal.feeds.feeder import Fed
from shoal.runtime.patience import NowAndThen

log = logging.getLogger("shoal")


def progress_line(fed: Fed) -> str:
    """The progress of a feed in one line."""
    return f"{fed.waiting:,} messages wait · {fed.told}"


def progress_logger(about: str, every_s: float) -> Callable[[Fed], object]:
    """A callback for a feeder that logs its progress every `every_s`, if it has changed."""
    timer, last = NowAndThen(every_s, at_once=False), ""

    def watch(fed: Fed) -> None:
        nonlocal last
        line = progress_line(fed)
        if line != last and timer.is_due():
            last = line
            log.info("%s: %s", about, line)

    return watch
