"""Decides how many workers one crawl should have, and remembers what that takes between two looks.
Pure except for the jitter: callers pass in the look and the time."""

from __future__ import annotations

from shoal.insight.advise.demand import NOT_STARTED, demand_of
from shoal.insight.advise.scaling import Bounds, Staff, Staffing, scaled
from shoal.insight.advise.situation import Look, situation
from shoal.runtime.patience import jitter

GROWTH_S = 10.0
"""Growth is measured between looks that are at least this far apart, once there are such."""


class Scaler:
    """Decides on the workers of one crawl."""

    def __init__(self, bounds: Bounds, *, is_one_machine: bool = False) -> None:
        """`is_one_machine`: more workers have to share the present machine."""
        self.bounds = bounds
        self.staffing: Staffing | None = None
        """The last decision."""
        self._is_one_machine = is_one_machine
        self._looks: list[tuple[float, Look]] = []
        self._spread = 0.0

    def decide(self, look: Look | None, staff: Staff, now: float) -> Staffing:
        """Decide how many workers there should be from now on. `look` is None if the crawl was
        never started. `now` is by a monotonic clock."""
        if look is None:
            self._looks.clear()
            asked = NOT_STARTED
        else:
            seen = situation(look, self._looks[0][1] if self._looks else None)
            self._remember(look, now)
            asked = demand_of(seen, is_one_machine=self._is_one_machine)
        if self.staffing is None or self.staffing.less_since is None:
            self._spread = jitter()
        spread = self._spread if staff.others else 0.0
        self.staffing = scaled(self.staffing, asked, staff, self.bounds, now, spread=spread)
        return self.staffing

    def start_over(self) -> None:
        """Forget the last decision: the workers that it was about are gone."""
        self.staffing = None

    def _remember(self, look: Look, now: float) -> None:
        """Keep two looks, at least `GROWTH_S` apart: the older one to compare with, and the one
        that takes its place."""
        if not self._looks or now - self._looks[-1][0] >= GROWTH_S:
            self._looks = [*self._looks[-1:], (now, look)]
