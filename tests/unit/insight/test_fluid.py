"""When a fleet is done with queues that each allow so much: by the fluid, and page by page."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from math import inf
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.insight.advise.fluid import Capacity, Drained, Queue, drain
from support.crawl_simulation import SimulatedHost, Simulation

QUEUES = st.lists(
    st.builds(
        Queue,
        st.just("host"),
        st.integers(0, 10_000).map(float),
        hold_s=st.floats(0.001, 30),
        turn_s=st.sampled_from([0.0, 0.01, 0.55, 1.1, 30.0]),
        room=st.sampled_from([1.0, 4.0, 16.0]),
    ),
    max_size=12,
)
CAPACITIES = st.builds(Capacity, st.floats(0.1, 10_000), st.floats(0.1, 10_000))


def zipf(hosts: int, most: int) -> list[int]:
    return [max(most // rank, 1) for rank in range(1, hosts + 1)]


def queue_of(host: SimulatedHost, read_s: float) -> Queue:
    return Queue("host", host.pages, host.latency_s + read_s, host.interval_s, host.room)


def both(
    hosts: Sequence[SimulatedHost], slots: int, cores: int = 1, read_s: float = 0.0
) -> tuple[float, float]:
    """By the fluid, and page by page."""
    capacity = Capacity(slots, cores / read_s if read_s else inf)
    fluid_s = drain([queue_of(host, read_s) for host in hosts], capacity).seconds
    return fluid_s, Simulation(deepcopy(hosts), slots, cores, read_s).run()


SCENES = {
    "one host at a rate": ([SimulatedHost(500, 0.3, interval_s=0.55)], 32, 1, 0.0),
    "one host with a room": ([SimulatedHost(8_000, 0.2, room=16)], 64, 1, 0.0),
    "few slots for a room": ([SimulatedHost(8_000, 0.2, room=16)], 5, 1, 0.0),
    "many hosts at rates, slots enough": (
        [SimulatedHost(pages, 0.5, interval_s=1.1) for pages in zipf(100, 1000)],
        200,
        1,
        0.0,
    ),
    "many hosts at rates, few slots": (
        [SimulatedHost(pages, 0.5, interval_s=1.1) for pages in zipf(100, 1000)],
        8,
        1,
        0.0,
    ),
    "slow hosts beside quick ones": (
        [SimulatedHost(400, 2.0, room=4) for _ in range(10)]
        + [SimulatedHost(4_000, 0.05, room=4) for _ in range(10)],
        40,
        1,
        0.0,
    ),
    "cores": ([SimulatedHost(pages, 0.1) for pages in zipf(40, 2000)], 400, 2, 0.05),
    "cores, then one host": (
        [SimulatedHost(60, 0.1) for _ in range(100)] + [SimulatedHost(700, 0.1, interval_s=0.5)],
        400,
        2,
        0.05,
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_fluid_agrees_with_what_happens_page_by_page(scene: str) -> None:
    hosts, slots, cores, read_s = SCENES[scene]
    fluid_s, simulated_s = both(hosts, slots, cores, read_s)
    assert fluid_s == pytest.approx(simulated_s, rel=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_and_so_it_does_at_hosts_of_all_kinds(seed: int) -> None:
    dice = Random(seed)
    hosts = [
        SimulatedHost(
            int(dice.paretovariate(1.0) * 30) % 1000 + 50,
            dice.choice([0.05, 0.2, 1.0]),
            interval_s=dice.choice([0.0, 0.11, 0.55, 1.1]),
            room=dice.choice([1, 4, 16]),
        )
        for _ in range(60)
    ]
    for slots in (8, 32, 128):
        fluid_s, simulated_s = both(hosts, slots)
        assert fluid_s == pytest.approx(simulated_s, rel=0.03), slots


def test_the_plain_bound_is_too_short() -> None:
    """Hosts with much to do are left over at the end, and the fleet has little to do."""
    hosts = [SimulatedHost(pages, 0.5, interval_s=0.55) for pages in zipf(300, 2400)]
    slots = 8
    fluid_s, simulated_s = both(hosts, slots)
    pages = sum(host.pages for host in hosts)
    longest_s = max(host.pages * host.interval_s for host in hosts)
    bound_s = max(longest_s, pages * 0.5 / slots)
    assert bound_s < 0.85 * simulated_s
    assert fluid_s == pytest.approx(simulated_s, rel=0.03)


@given(QUEUES, CAPACITIES, st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_more_of_anything_never_takes_longer(
    queues: list[Queue], capacity: Capacity, more_slots: float, more_per_s: float
) -> None:
    more = Capacity(capacity.slots * more_slots, capacity.per_s * more_per_s)
    assert drain(queues, more).seconds <= drain(queues, capacity).seconds * (1 + 1e-6)


@given(QUEUES, CAPACITIES)
def test_no_limit_is_overstepped(queues: list[Queue], capacity: Capacity) -> None:
    drained = drain(queues, capacity)
    pages = sum(queue.pages for queue in queues)
    slot_s = sum(queue.pages * queue.hold_s for queue in queues)
    bounds = (pages / capacity.per_s, slot_s / capacity.slots, *(queue.floor_s for queue in queues))
    assert drained.seconds >= max(bounds) * (1 - 1e-6)
    # Somebody is always at a limit: not longer than all of them one after the other.
    assert drained.seconds <= sum(bounds) * (1 + 1e-6)
    assert drained.per_s <= capacity.per_s * (1 + 1e-6)


@given(QUEUES, CAPACITIES, st.integers(0, 5_000))
def test_more_work_never_takes_less_time(
    queues: list[Queue], capacity: Capacity, more: int
) -> None:
    longer = [msgspec.structs.replace(at, pages=at.pages + more) for at in queues]
    assert drain(longer, capacity).seconds >= drain(queues, capacity).seconds * (1 - 1e-6)


def test_nothing_to_do_and_nothing_to_do_it_with() -> None:
    assert drain([], Capacity(1, 1)) == Drained(0.0, 0.0, False)
    assert drain([Queue("host", 0, 1)], Capacity(0, 0)) == Drained(0.0, 0.0, False)
    assert drain([Queue("host", 1, 1)], Capacity(0, 1)).seconds == inf


def test_very_many_queues_are_served_in_few_steps() -> None:
    """Ten thousand hosts, all of them different: about as the sum of all of them would be."""
    queues = [Queue("host", 100.0 + at, 0.5, 0.55) for at in range(10_000)]
    drained = drain(queues, Capacity(50, inf))
    least_s = sum(queue.pages for queue in queues) * 0.5 / 50
    assert drained.seconds == pytest.approx(least_s, rel=0.02)
