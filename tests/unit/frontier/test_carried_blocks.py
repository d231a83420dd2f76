"""Blocks as the scripts write them, and what others may have written in their place."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.frontier.broker.blocks import (
    SEAL_BYTES,
    Head,
    from_outbox,
    lane_of,
    read_block,
    shared_lanes,
)
from shoal.frontier.broker.carrier import Block

KEY = b"a key"
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
    came = read_block(block)
    assert came is not None
    assert came == (b"\xff" * 8, Head("ab12", True, -7, "a.example:80"), ENTRIES, b"")
    assert came.is_sealed_by(b""), "who has no key cannot tell"
    assert not came.is_sealed_by(KEY)


def test_with_a_key_are_sealed_and_always_alike() -> None:
    block = from_outbox("shop", packed(), KEY)
    assert block == from_outbox("shop", packed(), KEY)
    came = read_block(block)
    assert came is not None
    assert (came.head, came.entries) == (Head("ab12", True, -7, "a.example:80"), ENTRIES)
    assert len(came.seal) == SEAL_BYTES
    assert came.is_sealed_by(KEY)
    assert not came.is_sealed_by(b"another")


@pytest.mark.parametrize("head", [b"ab12 1 -7 b.example:80", b"ab12 0 -7 a.example:80"])
def test_of_another_lane_have_another_seal(head: bytes) -> None:
    assert forged(head=head) is False


@pytest.mark.parametrize(
    "entries",
    [
        [*ENTRIES, b"fingerp3\0\0task three"],
        ENTRIES[:1],
        [ENTRIES[1], ENTRIES[0]],
        [ENTRIES[0] + b"x", ENTRIES[1]],
        [ENTRIES[0][:-1], ENTRIES[0][-1:] + ENTRIES[1]],
    ],
)
def test_with_other_tasks_have_another_seal(entries: list[bytes]) -> None:
    assert forged(entries=entries) is False


def test_with_another_id_have_another_seal() -> None:
    came = read_block(from_outbox("shop", packed(), KEY))
    assert came is not None
    assert not came._replace(id=b"\0" * 8).is_sealed_by(KEY)


def forged(**other: Any) -> bool:
    """Whether other contents pass with the seal of these."""
    sealed = read_block(from_outbox("shop", packed(), KEY))
    made = read_block(from_outbox("shop", packed(**other)))
    assert sealed is not None
    assert made is not None
    return made._replace(seal=sealed.seal).is_sealed_by(KEY)


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
        [b"\0\x0bab 1 1 a no" + ENTRIES[0]],
        [b"\0\x08ab 1 1 a" + ENTRIES[0], b"short"],
    ],
)
def test_of_others_are_none(entries: list[bytes]) -> None:
    assert read_block(Block(1, "lane", entries)) is None
