"""Reading the carrier and the key of a crawl from its record."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock, Mock

from shoal.frontier.broker.carrier_record import CarrierRecord

KEY = b"k" * 32


def carrier_record(
    record: list[bytes | None], *, is_open: bool = True
) -> tuple[CarrierRecord, AsyncMock]:
    link: Any = Mock(command=AsyncMock(side_effect=lambda *_: record))
    shard: Any = Mock(crawl="shop", key="shoal:{shop}:crawl")
    carrier: Any = Mock(is_open=is_open)
    carrier.name = "amqp://here:5672/%2F"
    return CarrierRecord(link, shard, carrier), link.command


async def test_a_key_that_is_made_in_the_middle_of_a_life_is_seen() -> None:
    record: list[bytes | None] = [b"ab12", None, None]
    found, _ = carrier_record(record)
    await found.read()
    assert found.key == b"", "tasks of the crawl do not travel yet"
    record[1:] = [b"amqp://here:5672/%2F", KEY.hex().encode()]
    await found.ensure_current("ab12")
    assert found.key == KEY


async def test_they_are_read_once_in_a_life() -> None:
    found, asked = carrier_record([b"ab12", b"amqp://here:5672/%2F", KEY.hex().encode()])
    for _ in range(3):
        await found.ensure_current("ab12")
    assert (asked.await_count, found.key) == (1, KEY)


async def test_nobody_seals_what_never_leaves_redis() -> None:
    found, asked = carrier_record(
        [b"ab12", b"amqp://here:5672/%2F", KEY.hex().encode()], is_open=False
    )
    for _ in range(3):
        await found.ensure_current("ab12")
    assert (asked.await_count, found.key) == (1, b"")
