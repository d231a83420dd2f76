"""What every carrier must do. A backend subclasses the suite and supplies two fixtures:

    class TestMyCarrier(CarrierContract):
        @pytest.fixture
        def rig(self) -> Iterator[Rig]: ...

A rig opens carriers to one broker. Blocks that a carrier holds are delivered again soon after it is
closed. The fixture closes all carriers.
"""

from __future__ import annotations

import asyncio
import os
import random
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import pytest

from shoal.errors import StorageBusy
from shoal.frontier.broker.carrier import (
    MAX_ENTRIES,
    Block,
    Carrier,
    Delivery,
    host_lane,
    new_id,
    shared_lane,
)
from support.tcp_proxy import TcpProxy
from support.until import until


class Rig(Protocol):
    """A broker, and the network to it."""

    network: TcpProxy
    in_order: bool
    """Whether blocks are delivered in the order in which they were published."""
    many: int
    """The number of blocks for tests with many of them."""

    @abstractmethod
    def connect(self) -> Carrier:
        """A new connection, as if from another process."""

    @abstractmethod
    async def put(self, lane: str, body: bytes) -> None:
        """Put a message there that Shoal has not written."""

    @abstractmethod
    async def purge(self, lane: str) -> None:
        """Delete all messages of a lane, as an operator could."""


def some_block(lane: str, *entries: bytes) -> Block:
    return Block(new_id(), lane, list(entries or [b"a", b"b"]))


async def fetched(carrier: Carrier, lane: str, count: int) -> list[Delivery]:
    """Fetch until `count` deliveries came."""
    found = list[Delivery]()

    async def is_enough() -> bool:
        found.extend(await carrier.fetch(lane, count - len(found)))
        return len(found) >= count

    await until(f"{count} blocks of {lane}", is_enough)
    return found


def blocks_of(deliveries: Sequence[Delivery]) -> list[Block]:
    return [delivery.block for delivery in deliveries]


def by_id(blocks: Sequence[Block]) -> list[Block]:
    return sorted(blocks, key=lambda block: block.id)


async def finish(carrier: Carrier, deliveries: Sequence[Delivery]) -> None:
    await carrier.ack([delivery.receipt for delivery in deliveries])


async def is_empty(carrier: Carrier, lane: str) -> bool:
    return await carrier.count(lane) == 0


class CarrierContract:
    """The tests that every carrier has to pass."""

    @pytest.fixture
    def lane(self) -> str:
        return host_lane(f"crawl-{os.urandom(4).hex()}", "shop.example:8080", -5)

    @pytest.fixture
    def carrier(self, rig: Rig) -> Carrier:
        return rig.connect()

    async def test_there_and_back(self, carrier: Carrier, lane: str) -> None:
        await carrier.declare(lane)
        await carrier.declare(lane)
        block = Block(2**64 - 1, lane, [b"", b"\x00\xff", bytes(range(256))])
        await carrier.publish([block])
        (delivery,) = await fetched(carrier, lane, 1)
        assert delivery.block == block
        await finish(carrier, [delivery])
        await until("the lane to be empty", lambda: is_empty(carrier, lane))
        assert await carrier.fetch(lane, 10) == []

    async def test_nothing_to_do(self, carrier: Carrier) -> None:
        await carrier.publish([])
        await carrier.ack([])

    async def test_a_lane_that_is_not_there(self, carrier: Carrier, lane: str) -> None:
        assert await carrier.fetch(lane, 5) == []
        assert await carrier.count(lane) == 0
        await carrier.drop(lane)
        await carrier.publish([block := some_block(lane)])
        assert blocks_of(await fetched(carrier, lane, 1)) == [block]

    async def test_order_and_limit(self, rig: Rig, carrier: Carrier, lane: str) -> None:
        blocks = [some_block(lane, b"%d" % number) for number in range(25)]
        await carrier.declare(lane)
        await carrier.publish(blocks)
        first = await carrier.fetch(lane, 3)
        assert 0 < len(first) <= 3
        found = blocks_of(first + await fetched(carrier, lane, 25 - len(first)))
        if rig.in_order:
            assert found == blocks
        assert by_id(found) == by_id(blocks)

    async def test_lanes_are_apart(self, carrier: Carrier, lane: str) -> None:
        others = [shared_lane(lane, 1), shared_lane(lane, 2), lane + "0"]
        blocks = [some_block(each) for each in (lane, *others)]
        await carrier.publish(blocks)
        for block in blocks:
            assert blocks_of(await fetched(carrier, block.lane, 1)) == [block]

    @pytest.mark.parametrize(
        "name",
        [
            *("a b", "a/b", "ä€", "*", "#", "q?x=1", "{x}", "'", '"', "a\\b", "a%2Fb"),
            *("x" * 300, "€" * 100, "." * 3),
        ],
    )
    async def test_odd_names(self, carrier: Carrier, lane: str, name: str) -> None:
        odd = f"{lane}.{name}"
        await carrier.declare(odd)
        await carrier.publish([block := some_block(odd)])
        found = await fetched(carrier, odd, 1)
        assert blocks_of(found) == [block]
        await finish(carrier, found)
        await carrier.drop(odd)

    async def test_names_that_begin_alike(self, carrier: Carrier, lane: str) -> None:
        first, second = (f"{lane}.{'x' * 300}{end}" for end in "ab")
        await carrier.publish([some_block(first), block := some_block(second)])
        assert blocks_of(await fetched(carrier, second, 1)) == [block]

    async def test_count_and_drop(self, carrier: Carrier, lane: str) -> None:
        await carrier.declare(lane)
        await carrier.publish([some_block(lane) for _ in range(12)])

        async def all_counted() -> bool:
            return await carrier.count(lane) == 12

        await until("12 blocks to be counted", all_counted)
        await carrier.drop(lane)
        await carrier.drop(lane)
        assert await carrier.count(lane) == 0
        assert await carrier.fetch(lane, 5) == []

    async def test_what_is_held_is_nobody_elses(self, rig: Rig, lane: str) -> None:
        ours, others = rig.connect(), rig.connect()
        await ours.publish([some_block(lane), some_block(lane)])
        (first,) = await fetched(ours, lane, 1)
        (second,) = await fetched(others, lane, 1)
        assert first.block != second.block
        assert await others.fetch(lane, 5) == []

    async def test_what_is_not_acknowledged_comes_again(self, rig: Rig, lane: str) -> None:
        dying, living = rig.connect(), rig.connect()
        blocks = [some_block(lane) for _ in range(3)]
        await dying.publish(blocks)
        deliveries = await fetched(dying, lane, 3)
        await finish(dying, deliveries[:1])
        await dying.close()
        left = [block for block in blocks if block != deliveries[0].block]
        again = await fetched(living, lane, 2)
        assert by_id(blocks_of(again)) == by_id(left)
        await finish(living, again)
        await until("the lane to be empty", lambda: is_empty(living, lane))

    async def test_an_old_receipt_does_no_harm(self, rig: Rig, lane: str) -> None:
        carrier, other = rig.connect(), rig.connect()
        await carrier.publish([block := some_block(lane)])
        old = await fetched(carrier, lane, 1)
        await carrier.close()
        assert blocks_of(await fetched(other, lane, 1)) == [block]
        await finish(other, old)

    async def test_a_block_published_twice(self, carrier: Carrier, lane: str) -> None:
        """A process that gets no confirmation publishes the block again."""
        block = some_block(lane)
        await carrier.publish([block])
        await carrier.publish([block])
        found = await fetched(carrier, lane, 1)
        found += await carrier.fetch(lane, 1)
        assert {delivery.block.id for delivery in found} == {block.id}
        await finish(carrier, found)
        await until("the lane to be empty", lambda: is_empty(carrier, lane))

    async def test_a_large_block(self, carrier: Carrier, lane: str) -> None:
        """Random bytes are the worst case, as they cannot be compressed."""
        rest = carrier.most_bytes - (MAX_ENTRIES - 1)
        entries = [os.urandom(rest), *(os.urandom(1) for _ in range(MAX_ENTRIES - 1))]
        blocks = [some_block(lane, *entries), some_block(lane, b"small")]
        await carrier.publish(blocks)
        assert by_id(blocks_of(await fetched(carrier, lane, 2))) == by_id(blocks)

    async def test_many_blocks(self, rig: Rig, carrier: Carrier, lane: str) -> None:
        chance = random.Random(1)
        blocks = [some_block(lane, chance.randbytes(30)) for _ in range(rig.many)]
        await carrier.publish(blocks)
        found = list[Delivery]()
        while len(found) < rig.many:
            more = await fetched(carrier, lane, min(100, rig.many - len(found)))
            await finish(carrier, more)
            found += more
        assert by_id(blocks_of(found)) == by_id(blocks)
        assert await carrier.fetch(lane, 1) == []

    async def test_several_fetch_at_once(self, rig: Rig, lane: str) -> None:
        carriers = [rig.connect() for _ in range(4)]
        blocks = [some_block(lane) for _ in range(60)]
        await carriers[0].publish(blocks)
        found = dict[int, Block]()

        async def take(carrier: Carrier) -> None:
            """On a slow broker, a hold may expire, and another carrier gets the block."""

            async def are_all_found() -> bool:
                found.update(
                    (block.id, block) for block in blocks_of(await carrier.fetch(lane, 15))
                )
                return len(found) == len(blocks)

            await until("all blocks, by somebody", are_all_found)

        await asyncio.gather(*map(take, carriers))
        assert by_id(list(found.values())) == by_id(blocks)

    async def test_strangers(
        self, rig: Rig, carrier: Carrier, lane: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Messages that are not blocks are removed and logged. Blocks behind them are delivered."""
        await carrier.declare(lane)
        whole = some_block(lane)
        for body in (b"", b"hello", b"S1" + b"\x00" * 8, b"S1" + os.urandom(50)):
            await rig.put(lane, body)
        await carrier.publish([whole])
        found = await fetched(carrier, lane, 1)
        assert blocks_of(found) == [whole]
        await finish(carrier, found)
        await until("the lane to be empty", lambda: is_empty(carrier, lane))
        assert caplog.text.count("is no block, and is removed") == 4

    async def test_a_lane_purged_by_hand(self, rig: Rig, carrier: Carrier, lane: str) -> None:
        await carrier.publish([some_block(lane), some_block(lane)])
        held = await fetched(carrier, lane, 1)
        await rig.purge(lane)
        await finish(carrier, held)
        await until("the lane to be empty", lambda: is_empty(carrier, lane))
        await carrier.publish([block := some_block(lane)])
        assert blocks_of(await fetched(carrier, lane, 1)) == [block]

    async def test_the_broker_is_away_and_back(self, rig: Rig, lane: str) -> None:
        carrier = rig.connect()
        await carrier.publish([first := some_block(lane)])
        (held,) = await fetched(carrier, lane, 1)
        rig.network.cut()
        second = some_block(lane)
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: carrier.declare(lane),
            lambda: carrier.publish([second]),
            lambda: carrier.fetch(lane, 1),
            lambda: carrier.count(lane),
            lambda: carrier.drop(lane),
        ]
        for call in calls:
            with pytest.raises(StorageBusy) as raised:
                await call()
            assert "\n" not in str(raised.value)
        rig.network.heal()
        await carrier.publish([second])
        found = {block.id: block for block in blocks_of(await fetched(carrier, lane, 2))}
        assert found == {first.id: first, second.id: second}
        await finish(carrier, [held])
