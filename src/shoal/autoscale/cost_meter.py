"""Adds up what workers have cost, and stops at a budget."""

from __future__ import annotations

import re

from shoal.errors import ConfigError, ShoalError

HOUR_S = 3600.0

_PER_HOUR = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(?:/\s*h)?\s*", re.ASCII)


class BudgetSpent(ShoalError):
    """The workers have used up the budget. The crawl is not over."""


def per_hour(text: str) -> float:
    """Read a price per hour: `5/h` or `0.05`. Raises ConfigError."""
    match = _PER_HOUR.fullmatch(text)
    if match is None or not float(match[1]):
        raise ConfigError(f"not a price: {text!r} (write 0.05/h)")
    return float(match[1])


class CostMeter:
    """Charges for workers by the hour. It starts at zero in each process."""

    def __init__(self, worker_per_h: float = 0.0, budget: float | None = None) -> None:
        self._worker_per_h = worker_per_h
        self._budget = budget
        self._spent = 0.0
        self._charged_at: float | None = None

    @property
    def spent(self) -> float | None:
        """What the workers have cost so far. None if their price is not known."""
        return self._spent if self._worker_per_h else None

    def charge(self, workers: int, now: float) -> None:
        """Charge for this many workers since the last charge. Raises BudgetSpent once the budget is
        used up."""
        if self._charged_at is not None:
            self._spent += workers * (now - self._charged_at) / HOUR_S * self._worker_per_h
        self._charged_at = now
        if self._budget is not None and self._spent >= self._budget:
            raise BudgetSpent(f"the budget of {self._budget:g} is spent; the crawl is not over")
