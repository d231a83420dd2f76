"""Blocks as bytes."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.frontier.broker.carrier import MAX_ENTRIES, Block
from shoal.frontier.broker.encoding import NoBlock, decode, encode

LANE = "shoal.shop.shared.1"
MOST = 10_000

entries = st.lists(st.binary(max_size=100), max_size=MAX_ENTRIES)


@given(st.integers(0, 2**64 - 1), entries)
def test_there_and_back(number: int, entries: list[bytes]) -> None:
    block = Block(number, LANE, entries)
    assert decode(encode(block), LANE, MOST) == block


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda data: b"S1" + data))
def test_anything_else_is_no_block(data: bytes) -> None:
    with pytest.raises(NoBlock):
        decode(data, LANE, MOST)


@given(entries, st.data())
def test_a_block_that_was_damaged(entries: list[bytes], data: st.DataObject) -> None:
    whole = encode(Block(7, LANE, entries))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(NoBlock):
        decode(cut, LANE, MOST)


def test_no_bomb_is_blown_up() -> None:
    bomb = encode(Block(7, LANE, []))[:10] + zlib.compress(bytes(50_000_000))
    with pytest.raises(NoBlock, match="larger than a block can be"):
        decode(bomb, LANE, MOST)


def test_the_largest_block() -> None:
    block = Block(1, LANE, [bytes(MOST - MAX_ENTRIES + 1), *(b"x" for _ in range(MAX_ENTRIES - 1))])
    assert decode(encode(block), LANE, MOST) == block
