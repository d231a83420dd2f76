"""Counts a worker's own work for its signs of life.

The counts are plain numbers that one thread increments: their cost is negligible beside that of a
page.
"""

from __future__ import annotations

import time

import msgspec

from shoal.core.histograms import Histogram
from shoal.core.ledger import SlotTime
from shoal.worker.ledger import Ledger
from shoal.worker.report import Report


class Did(msgspec.Struct, frozen=True):
    """What a worker has done by the time it ends."""

    pages: int = 0
    items: int = 0
    dead: int = 0

    def __add__(self, other: Did) -> Did:
        return Did(self.pages + other.pages, self.items + other.items, self.dead + other.dead)


CLASSES = 10
"""Classes of statuses are counted up to 9xx: servers invent statuses."""


class Meter:
    """Counts from the start of its worker."""

    def __init__(self, slots: int) -> None:
        self.ledger = Ledger(slots, time.monotonic())
        self.pages = 0
        """Pages that were finished."""
        self.items = 0
        """Items of the tries that were finished."""
        self.dead = 0
        """Tasks that died with this worker's tries."""
        self.ended = 0
        """Tasks that have ended in any way with this worker's tries."""
        self.backlog = 0
        """Pages that wait to be stored and finished. The only number that goes down again."""
        self.fetches = Histogram()
        self.saves = Histogram()
        self.parsing_s = 0.0
        self.finishing_s = 0.0
        self.body_bytes = 0
        self.wire_bytes = 0
        self._statuses = [0] * CLASSES

    def note(self, report: Report) -> None:
        """Count a visit that is over."""
        outcome = report.outcome
        self.wire_bytes += outcome.wire_bytes
        if report.status is None:
            return
        self._statuses[report.status // 100 % CLASSES] += 1
        self.fetches.note(outcome.latency_s)
        self.parsing_s += report.parsing_s
        self.body_bytes += outcome.body_bytes

    @property
    def did(self) -> Did:
        """The totals to report at the end."""
        return Did(self.pages, self.items, self.dead)

    @property
    def slot_time(self) -> SlotTime:
        """Where the time of the slots has gone so far."""
        return self.ledger.told(time.monotonic(), self.parsing_s)

    @property
    def responses(self) -> dict[str, int]:
        """The number of answers by class of status; classes that did not occur are left out."""
        return {f"{first}xx": count for first, count in enumerate(self._statuses) if count}
