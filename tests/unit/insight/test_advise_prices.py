"""What plans cost, and on which machines they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.errors import ConfigError
from shoal.insight.advise.advice import Advised, advice
from shoal.insight.advise.prices import MONTH_H, Prices, Scale, load_prices
from shoal.insight.advise.situation import Situation
from shoal.insight.advise.words import cost_words, machine_words
from support.looks import host, pulse, seen

NONE = Rules(rate="none")


def busy(hosts: int) -> Situation:
    """Workers that read pages for 20 ms each, and hosts that could give more."""
    many = [host(f"{at}.example", 100_000, latency_s=0.5) for at in range(hosts)]
    return seen(many, [pulse(pages=2_000, slots=32, main_s=0.02)], rules=NONE)


def advised(found: Situation, prices: Prices) -> Advised:
    made = advice(found, prices=prices).advised
    assert made is not None
    return made


def test_one_machine_while_one_suffices() -> None:
    machines = advised(seen([host()]), Prices(machine=0.1)).machines
    assert (machines.scale, machines.count, machines.cores) == (Scale.ONE, 1, 4)


def test_a_larger_machine_rather_than_several() -> None:
    made = advised(busy(12), Prices(machine=0.05, cores=2, memory_gb=4))
    machines = made.machines
    assert (machines.scale, machines.count) == (Scale.UP, 1)
    assert machines.cores == 2 * machines.units
    used = made.enough.forecast.per_s * 0.02
    assert used / 0.7 <= machines.cores <= used / 0.7 + 2
    assert "rather than several" in machine_words(machines, Prices())


@pytest.mark.parametrize(
    ("prices", "why"),
    [
        (Prices(machine=1.0, cores=2, memory_gb=4), "price"),
        (Prices(machine=1.0, cores=2, memory_gb=4, scale_out_above=1e6), ""),
        (Prices(cores=2, memory_gb=4, mbit=10), "network"),
        (Prices(cores=2, memory_gb=4, machines_at_least=2), "as many as asked for"),
    ],
)
def test_several_machines_for_a_reason_only(prices: Prices, why: str) -> None:
    machines = advised(busy(12), prices).machines
    assert machines.why == why
    assert (machines.scale is Scale.OUT) == bool(why)
    assert (machines.count > 1) == bool(why)
    assert machine_words(machines, prices)


@pytest.mark.parametrize(
    "prices",
    [
        Prices(machine=1e9, cores=0.001, memory_gb=0.001, mbit=0.001),
        Prices(machine=1e9, cores=1e6, memory_gb=1e6, mbit=1e6),
    ],
)
def test_any_machine_can_be_calculated_with(prices: Prices) -> None:
    made = advised(seen([host()]), prices)
    assert machine_words(made.machines, prices)
    assert cost_words(made.enough, prices)


def test_no_machine_is_larger_than_there_are() -> None:
    machines = advised(busy(200), Prices(cores=2, memory_gb=4)).machines
    assert (machines.scale, machines.why) == (Scale.OUT, "size")
    assert "no machines that are so large" in machine_words(machines, Prices())


def test_what_it_costs_is_the_time_times_the_price() -> None:
    prices = Prices(machine=0.1, postgresql=73, redis=73, currency="€")
    enough = advised(seen([host(waiting=27_300)], [pulse(pages=109)]), prices).enough
    assert enough.cost is not None
    hours = enough.forecast.seconds / 3600
    assert enough.cost.machines == pytest.approx(0.1 * hours)
    assert enough.cost.stores == pytest.approx(146 / MONTH_H * hours)
    assert enough.cost.total == pytest.approx(0.3 * hours)
    assert cost_words(enough, prices) == (
        f"{0.3 * hours:.2f} € until it is done (machines {0.1 * hours:.2f}, stores"
        f" {0.2 * hours:.2f}); a whole month of the machines is 73.00"
    )


def test_without_prices_nothing_is_said_of_costs() -> None:
    assert advised(seen([host()]), Prices()).enough.cost is None


def test_prices_are_read_from_the_file(tmp_path: Path) -> None:
    assert load_prices(tmp_path) == Prices()
    (tmp_path / "shoal.toml").write_text("[prices]\nmachine = 0.05\ncores = 2\n")
    assert load_prices(tmp_path) == Prices(machine=0.05, cores=2.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prices = 3", "shoal.toml: [prices] "),
        ("[prices]\nmachine = -1", "machine"),
        ("[prices]\nmachine = 'cheap'", "machine"),
        ("[prices]\nmachine = nan", "machine"),
        ("[prices]\ncores = 0", "cores"),
        ("[prices]\nmemory_gb = 1e-320", "memory_gb"),
        ("[prices]\nmbit = 1e-320", "mbit"),
        ("[prices]\nworkers = 3", "workers"),
        ("[prices]\nmachines_at_least = 0", "machines_at_least"),
        ("[prices]\ncurrency = ''", "currency"),
    ],
)
def test_nonsense_is_told_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "shoal.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"shoal.toml: \[prices\]") as told:
        load_prices(tmp_path)
    assert words in str(told.value)
