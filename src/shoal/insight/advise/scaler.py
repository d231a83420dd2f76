"""One crawl's workers, from one look to the next. Pure but for the dice: whoever looks brings the
time."""

from __future__ import annotations

from shoal.insight.advise.demand import NOT_STARTED, demand_of
from shoal.insight.advise.scaling import Bounds, Staff, Staffing, scaled
from shoal.insight.advise.situation import Look, situation
from shoal.runtime.patience import jitter

GROWTH_S = 10.0
"""Growth is read off looks that are at least so far apart."""


class Scaler:
    """Decides on the workers of one crawl."""

    def __init__(self, bounds: Bounds, *, is_one_machine: bool = False) -> None:
        """`is_one_machine`: more workers have to do with the machines that there are."""
        self.bounds = bounds
        self.staffing: Staffing | None = None
        """What was decided last."""
        self._is_one_machine = is_one_machine
        self._looks: list[tuple[float, Look]] = []
        self._spread = 0.0

    def decide(self, look: Look | None, staff: Staff, now: float) -> Staffing:
        """How many there should be from now on. No look: nobody has started the crawl."""
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
        """Forget what was decided: those that it was about are gone."""
        self.staffing = None

    def _remember(self, look: Look, now: float) -> None:
        """Keep one look that is a while back, and one that will be."""
        if not self._looks or now - self._looks[-1][0] >= GROWTH_S:
            self._looks = [*self._looks[-1:], (now, look)]
