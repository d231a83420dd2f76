"""robots.txt as a frontier keeps it: small, and harmless whoever wrote it."""

from __future__ import annotations

import tracemalloc
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.records import Robots
from shoal.fetch.robots import MAX_BYTES
from shoal.frontier import stored_robots

REAL = "".join(f"Disallow: /catalog/{n}/private/\nAllow: /catalog/{n}/\n" for n in range(9_000))

some_robots = st.builds(
    Robots,
    text=st.text(st.characters(exclude_categories=["Cs"])),
    ttl_s=st.floats(0, 1e6),
    crawl_delay_s=st.floats(0, 300),
    error=st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)


@given(robots=some_robots, times=st.sampled_from([1, 100]))
def test_what_was_stored_comes_back(robots: Robots, times: int) -> None:
    robots = msgspec.structs.replace(robots, text=robots.text * times)
    assert stored_robots.unpack(stored_robots.pack(robots)) == robots


def test_a_long_one_takes_little() -> None:
    robots = Robots(f"User-agent: *\n{REAL}"[:MAX_BYTES], 86_400.0)
    assert len(robots.text) > 400_000
    assert len(stored_robots.pack(robots)) < len(robots.text) / 8


def test_that_of_an_earlier_version() -> None:
    robots = Robots(f"User-agent: *\n{REAL}", 86_400.0, 2.0)
    as_json = msgspec.json.encode(robots)
    assert stored_robots.unpack(as_json) == robots
    assert stored_robots.unpack(as_json.decode()) == robots, "a file has it as text"


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"not ours",
        b"{",
        b'{"text":1}',
        zlib.compress(b"no JSON"),
        zlib.compress(msgspec.json.encode(Robots("a" * 9_000, 1.0)))[:-9],
        zlib.compress(b"\xff\xfe{"),
    ],
)
def test_what_cannot_be_read_allows_nothing(stored: bytes) -> None:
    """And is asked for again soon."""
    robots = stored_robots.unpack(stored)
    assert robots.error
    assert robots.ttl_s <= 60.0


def test_a_bomb_takes_no_more_than_the_longest_text() -> None:
    bomb = zlib.compress(b'{"ttl_s":1,"text":"' + b"a" * 200_000_000 + b'"}', 9)
    tracemalloc.start()
    try:
        robots = stored_robots.unpack(bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert robots.error
    assert most < 4 * stored_robots.MOST_BYTES


def test_room_for_the_longest_text() -> None:
    robots = Robots("\x01" * MAX_BYTES, 86_400.0, 300.0)
    assert stored_robots.unpack(stored_robots.pack(robots)) == robots
