"""Shapes of addresses: what is alike, and that no address costs much."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.shapes import (
    MAX_REPEATS,
    MAX_SHAPE,
    kept_out_reason,
    repeated_segments,
    shape_of,
)
from shoal.core.urls import MAX_URL_LENGTH

SITE = "https://shop.example"
UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"

_parts = st.lists(st.sampled_from(["/a", "/b", "/7", "/x1", "/", "?", "&", "=", "é", "-", "%41"]))
_numbers = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/", "/"),
        ("/about", "/about"),
        ("/calendar/2026/11", "/calendar/N/N"),
        ("/calendar/2026-11-18", "/calendar/N"),
        ("/v1.2.3/item42.html", "/vN/itemN.html"),
        (f"/item/{UUID}/photos", "/item/ID/photos"),
        (f"/item/{UUID.upper()}", "/item/ID"),
        ("/c/deadbeef12345678", "/c/ID"),
        ("/20261118123456", "/N"),
        ("/decade/facade", "/decade/facade"),
        ("/blue-shoes", "/blue-shoes"),
        ("/a/b/a/b/a/b/a/b", "/a/b"),
        ("/2026/11/18", "/N/N/N"),
        ("/a/b/a/b", "/a/b/a/b"),
        ("/p/1/p/2/p/3/p/4", "/p/N"),
        ("/a/a/ab/ab", "/a/a/ab/ab"),
        ("/list?color=red&size=7", "/list?color&size"),
        ("/list?f[1]=a&f[2]=b", "/list?f[N]&f[N]"),
        ("/list?a=1&a=2&a=3", "/list?a"),
        ("/list?color=red&colour=blue", "/list?color&colour"),
        ("/list?7", "/list?N"),
    ],
)
def test_shapes(path: str, shape: str) -> None:
    assert shape_of(f"{SITE}{path}") == shape


@given(numbers=st.lists(_numbers, min_size=1, max_size=2), others=st.lists(_numbers, min_size=2))
def test_numbers_and_values_make_no_difference(numbers: list[int], others: list[int]) -> None:
    one, other = (
        f"{SITE}/day/{'/'.join(map(str, some))}?at={some[0]}"
        for some in (numbers, others[: len(numbers)])
    )
    assert shape_of(one) == shape_of(other)


@given(parts=_parts)
def test_a_shape_is_short_and_has_no_host_and_no_value(parts: list[str]) -> None:
    shape = shape_of(f"{SITE}/{''.join(parts)}")
    assert shape.startswith("/")
    assert len(shape) <= MAX_SHAPE
    assert "=" not in shape.partition("?")[2]
    assert not any(character.isdigit() for character in shape)


@given(segments=st.lists(st.sampled_from("ab"), min_size=1, max_size=4), more=st.integers(0, 20))
def test_segments_that_repeat_are_found(segments: list[str], more: int) -> None:
    path = f"/{'/'.join(segments)}" * (MAX_REPEATS + 1 + more)
    assert repeated_segments(SITE + path)
    assert repeated_segments(f"{SITE}/start{path}/end?x=/a")


@pytest.mark.parametrize(
    "path",
    [
        "/a" * MAX_REPEATS,
        "/a/b" * MAX_REPEATS,
        "/" + "/".join("abcdefghijklmnop"),
        "/" * 50,
        "/x?next=" + "/a" * 50,
        "/2026" * 4 + "/11" * 4 + "/18" * 4,
    ],
)
def test_other_paths_are_let_in(path: str) -> None:
    assert repeated_segments(SITE + path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/" + "a" * MAX_URL_LENGTH,
        "/a" * MAX_URL_LENGTH,
        "/" * MAX_URL_LENGTH,
        "/" + "1-" * MAX_URL_LENGTH,
        "/" + "a1" * MAX_URL_LENGTH,
        "/?" + "a&" * MAX_URL_LENGTH,
        ("/" + "a" * 90 + "b") * 90,
        ("/a" * 8 + "/b") * 400,
        ("/a/b/c/d" * 7 + "/x") * 200,
    ],
)
def test_no_address_costs_much(path: str) -> None:
    url = (SITE + path)[:MAX_URL_LENGTH]
    started = process_time()
    for _ in range(10):
        shape_of(url)
        repeated_segments(url)
    assert process_time() - started < 1.0


def test_the_reason_names_the_limit() -> None:
    alike = kept_out_reason("a.example", "/day/N", 1000)
    assert alike == "more than 1,000 pages like /day/N of a.example"
    assert kept_out_reason("a.example", "", 5) == "more than 5 pages of a.example"
    assert kept_out_reason("a.example", "", None) == "too many pages of a.example"
