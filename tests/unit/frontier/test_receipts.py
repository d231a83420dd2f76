"""When a block that has come in may be acknowledged."""

from __future__ import annotations

from shoal.frontier.broker.carrier import Block, Delivery
from shoal.frontier.broker.receipts import Receipts
from support.frontiers import FakeClock

DELIVERY = Delivery(Block(1, "lane", [b"entry"]), "receipt")


def test_once_the_same_server_was_seen_long_after() -> None:
    clock = FakeClock()
    receipts = Receipts(5.0, clock)
    receipts.keep("life", [DELIVERY])
    clock.now += 4.9
    assert receipts.take_due("life", receipts.now) == ([], [])
    clock.now += 0.2
    assert receipts.take_due("life", receipts.now) == ([DELIVERY], [])
    assert len(receipts) == 0


def test_not_because_we_were_slow_after_it_was_seen() -> None:
    clock = FakeClock()
    receipts = Receipts(5.0, clock)
    receipts.keep("life", [DELIVERY])
    seen_at = receipts.now
    clock.now += 60.0
    assert receipts.take_due("life", seen_at) == ([], [])
    assert len(receipts) == 1


def test_what_came_in_before_a_restart_is_brought_in_again() -> None:
    clock = FakeClock()
    receipts = Receipts(5.0, clock)
    receipts.keep("one life", [DELIVERY])
    clock.now += 60.0
    assert receipts.take_due("another", receipts.now) == ([], [DELIVERY])
