"""What workers cost, and what they may."""

from __future__ import annotations

import pytest

from shoal.autoscale.cost_meter import BudgetSpent, CostMeter, per_hour
from shoal.errors import ConfigError


def test_workers_are_paid_for_the_time_that_they_were_there() -> None:
    cost_meter = CostMeter(0.6, budget=1.0)
    cost_meter.charge(10, 5_000.0)
    cost_meter.charge(10, 5_180.0)
    assert cost_meter.spent == pytest.approx(0.3)
    cost_meter.charge(0, 100_000.0)
    assert cost_meter.spent == pytest.approx(0.3)
    with pytest.raises(BudgetSpent, match="the budget of 1 is spent"):
        cost_meter.charge(10, 100_420.0)


def test_without_a_price_nothing_is_told() -> None:
    cost_meter = CostMeter()
    cost_meter.charge(1, 0.0)
    cost_meter.charge(1, 3600.0)
    assert cost_meter.spent is None


def test_prices_are_by_the_hour() -> None:
    assert [per_hour(text) for text in ("5/h", " 0.05 / h", "20")] == [5, 0.05, 20]


@pytest.mark.parametrize("text", ["", "0", "-1/h", "5/s", "nan", "inf", "1e9", "5 €/h", "٥/h"])
def test_and_nothing_else_is_a_price(text: str) -> None:
    with pytest.raises(ConfigError, match="not a price"):
        per_hour(text)
