"""Blocks as the scripts write them, and what others may have written in their place."""

from __future__ import annotations

import pytest

from shoal.frontier.broker.blocks import Head, from_outbox, lane_of, shared_lanes, travelling
from shoal.frontier.broker.carrier import Block

ENTRIES = [b"fingerpr\0\0task one", b"fingerp2\0\0task two"]


def packed(head: bytes = b"ab12 1 -7 a.example:80", entries: list[bytes] | None = None) -> bytes:
    parts = [b"\xff" * 8, len(head).to_bytes(2), head]
    for entry in entries or ENTRIES:
        parts += [len(entry).to_bytes(4), entry]
    return b"".join(parts)


def test_come_back_as_they_left() -> None:
    block = from_outbox("shop", packed())
    assert (block.id, block.lane) == (2**64 - 1, "shoal.shop.host.a.example:80.-7")
    assert len(block.entries) == len(ENTRIES)
    came = travelling(block)
    assert came is not None
    assert came == (b"\xff" * 8, Head("ab12", True, -7, "a.example:80"), ENTRIES)


def test_share_lanes_that_all_know() -> None:
    lanes = {lane_of("shop", f"h{n}.example", 0, is_own=False) for n in range(2000)}
    assert lanes == shared_lanes("shop")


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [b""],
        [b"\0"],
        [b"\0\x05a b c"],
        [b"\0\x03a b" + ENTRIES[0]],
        [b"\0\x0aab 1 x a.b" + ENTRIES[0]],
        [b"\0\x05\xff 1 1 a" + ENTRIES[0]],
        [b"\0\x08ab 1 1 a"],
        [b"\0\x08ab 1 1 a" + ENTRIES[0], b"short"],
    ],
)
def test_of_others_are_none(entries: list[bytes]) -> None:
    assert travelling(Block(1, "lane", entries)) is None
