"""How a host's room is divided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.sharing import TURN_S, fair_share, share_of

rooms, workers = st.integers(0, 100), st.integers(1, 60)


@given(rooms, workers, st.floats(0, 1e10))
def test_all_of_the_room_is_given_out_and_no_more(room: int, count: int, now: float) -> None:
    shares = [fair_share(room, count, index, now) for index in range(count)]
    assert sum(shares) == room
    assert max(shares) - min(shares) <= 1


@given(rooms, workers)
def test_over_time_all_get_the_same(room: int, count: int) -> None:
    totals = [
        sum(fair_share(room, count, index, turn * TURN_S) for turn in range(count))
        for index in range(count)
    ]
    assert set(totals) == {room}


@pytest.mark.parametrize(
    ("target", "left", "in_flight", "share"),
    [
        (8, 16, 0, (8, 8)),
        (8, 16, 12, (8, 12)),  # What is in flight counts until it is answered.
        (8, 3, 0, (3, 3)),  # Others have not made room yet.
        (8, -2, 4, (0, 4)),  # Others have more than there is by now.
        (0, 16, 5, (0, 5)),
    ],
)
def test_a_share_is_what_others_leave(
    target: int, left: int, in_flight: int, share: tuple[int, int]
) -> None:
    assert share_of(target, left, in_flight) == share
