"""Figures for people."""

from __future__ import annotations

import pytest

from shoal.insight.figures import speed


@pytest.mark.parametrize(
    ("per_s", "told"),
    [
        *((0.0, "0"), (0.05123, "0.0512"), (7.738, "7.74"), (182.4, "182")),
        *((999.4, "999"), (999.6, "1,000"), (1_141.2, "1,141"), (25_000.0, "25,000")),
    ],
)
def test_a_speed_has_three_digits_and_no_exponent(per_s: float, told: str) -> None:
    assert speed(per_s) == told
