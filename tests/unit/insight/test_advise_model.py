"""What the model forecasts for other numbers of workers, whatever crawl it is."""

from __future__ import annotations

from math import isfinite

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.frontier.values import Chain, Host, Pulse
from shoal.insight.advise.advice import Advised, advice
from shoal.insight.advise.model import NEAR, Limit, Model, Plan, plan_now
from shoal.insight.advise.situation import Situation
from support.crawl_simulation import SimulatedHost, Simulation
from support.looks import host, pulse, seen

HOSTS = st.lists(
    st.builds(
        host,
        st.uuids().map(str),
        st.integers(1, 20_000),
        latency_s=st.floats(0.005, 20),
        crawl_delay_s=st.sampled_from([0.0, 0.0, 5.0]),
        penalty_s=st.sampled_from([0.0, 0.0, 2.0]),
    ),
    min_size=1,
    max_size=8,
)
WORKERS = st.lists(
    st.builds(
        pulse,
        st.uuids().map(str),
        pages=st.integers(1, 5_000),
        slots=st.integers(1, 64),
        latency_s=st.floats(0.01, 0.2),
        main_s=st.floats(0.0005, 0.012),
        idle=st.sampled_from(["polite", "starved", "stores", "frontier"]),
        save_s=st.floats(0.1, 60),
        finish_s=st.floats(0.1, 60),
        machine_s=st.floats(0.1, 240),
    ),
    min_size=1,
    max_size=3,
)
CHAINS = st.lists(
    st.builds(Chain, st.uuids().map(str), st.integers(1, 2_000)),
    max_size=3,
    unique_by=lambda c: c.name,
)
RATES = st.sampled_from(["none", "auto", "1/s", "20/s", "10/m"])


def situations(
    hosts: list[Host], workers: list[Pulse], chains: list[Chain], rate: str
) -> Situation:
    return seen(hosts, workers, chains=chains, rules=Rules(rate=rate))


SITUATIONS = st.builds(situations, HOSTS, WORKERS, CHAINS, RATES)


def model_of(situation: Situation) -> tuple[Model, Plan]:
    assert situation.fleet is not None
    return Model(situation, situation.fleet), plan_now(situation, situation.fleet)


@given(SITUATIONS, st.integers(1, 200), st.integers(1, 200), st.booleans())
def test_more_workers_are_never_forecast_to_take_longer(
    situation: Situation, few: int, more: int, fixed: bool
) -> None:
    model, plan = model_of(situation)
    fewer, larger = (
        model.forecast(msgspec.structs.replace(plan, workers=number, are_machines_fixed=fixed))
        for number in (few, few + more)
    )
    assert larger.seconds <= fewer.seconds * (1 + 1e-6)
    assert isfinite(larger.seconds)


@given(SITUATIONS)
def test_what_is_enough_is_the_fewest_near_the_best(situation: Situation) -> None:
    model, plan = model_of(situation)
    enough, most = model.best(plan), model.most(plan)
    assert enough.seconds <= most.seconds * NEAR * (1 + 1e-6)
    if (number := enough.plan.workers) > 1:
        fewer = model.forecast(msgspec.structs.replace(plan, workers=number - 1))
        assert fewer.seconds > most.seconds * NEAR


@given(SITUATIONS, st.floats(1, 1e6))
def test_no_host_is_ever_hit_faster_than_it_allows(situation: Situation, left_s: float) -> None:
    """Whatever is advised, all pages of a host take their turns."""
    made = advice(situation, deadline=situation.at + left_s).advised
    assert isinstance(made, Advised)
    forecasts = [made.now.forecast, made.enough.forecast, made.most.forecast]
    forecasts += [effect.forecast for effect in made.effects]
    for at in situation.hosts:
        least_s = at.pages * max(at.crawl_delay_s, at.penalty_s)
        assert all(forecast.seconds >= least_s * (1 - 1e-6) for forecast in forecasts)
    if made.due is not None and made.due.workers is not None:
        assert made.due.forecast.seconds <= left_s


@pytest.mark.parametrize("workers", [1, 3, 10, 40])
def test_it_agrees_with_what_happens_page_by_page(workers: int) -> None:
    """The whole way, from what workers say to a forecast, against a simulation by events."""
    pages = [3_000 // rank + 1 for rank in range(1, 61)]
    hosts = [host(f"{at}.example", count) for at, count in enumerate(pages)]
    worker = pulse(pages=1_190, slots=4, main_s=0.0, idle="starved")
    found = seen(hosts, [worker], rules=Rules(rate="2/s"))
    model, plan = model_of(found)
    forecast = model.forecast(msgspec.structs.replace(plan, workers=workers))
    simulated = Simulation(
        [SimulatedHost(count, 0.2, interval_s=0.55) for count in pages], 4 * workers
    )
    assert forecast.seconds == pytest.approx(simulated.run(), rel=0.03)
    assert forecast.limit in (Limit.SLOTS, Limit.HOSTS)
