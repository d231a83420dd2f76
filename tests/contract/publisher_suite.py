"""What every publisher must do. A backend subclasses the suite and supplies a fixture:

    class TestMyPublisher(PublisherContract):
        @pytest.fixture
        async def rig(self) -> AsyncIterator[Rig]: ...

The published messages are read with the sources of `shoal feed`.
"""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from contextlib import suppress
from typing import Any, Protocol

import pytest

from shoal.config import PublishFormat
from shoal.errors import ConfigError, StorageBusy
from shoal.feeds import open_source
from shoal.publish.events import Event
from shoal.publish.formats import Format
from shoal.publish.port import Channel, Message, Publisher
from support.tcp_proxy import TcpProxy
from support.until import until


class Rig(Protocol):
    """A broker with queues for one test, and the network to it."""

    network: TcpProxy
    most_bytes: int
    """The maximum size of one message."""

    @abstractmethod
    def connect(self) -> Publisher:
        """A new connection, as if from another process."""

    @abstractmethod
    def address_of(self, channel: Channel) -> str:
        """The address from which `shoal feed` would take the messages."""

    @abstractmethod
    async def delete(self, channel: Channel) -> None:
        """Delete the queue of these messages, as an operator could."""


def message(
    number: int, channel: Channel = Channel.ITEMS, form: PublishFormat = "plain", text: str = ""
) -> Message:
    body = json.dumps({"number": number, "text": text}, ensure_ascii=False).encode()
    return Format(form, {}).message(Event(channel, f"shop:item:{number}:1.0", body))


async def read(rig: Rig, channel: Channel, count: int) -> list[Any]:
    """Take at least `count` messages, and decode their JSON."""
    source = open_source(rig.address_of(channel))
    found = list[Any]()

    async def is_enough() -> bool:
        with suppress(StorageBusy):
            taken = await source.take(count, 1)
            found.extend(json.loads(one.wire.body) for one in taken)
            await source.done(taken)
        return len(found) >= count

    try:
        await until(f"{count} messages of {channel}", is_enough)
    finally:
        await source.close()
    return found


def numbers(found: list[Any]) -> list[int]:
    return sorted(one["number"] for one in found)


class PublisherContract:
    """The tests that every publisher has to pass."""

    @pytest.fixture
    def publisher(self, rig: Rig) -> Publisher:
        return rig.connect()

    async def test_each_channel_has_its_place(self, rig: Rig, publisher: Publisher) -> None:
        await publisher.check()
        await publisher.check()
        some = [message(number, channel) for number, channel in enumerate(Channel)]
        await publisher.publish(some)
        for number, channel in enumerate(Channel):
            assert numbers(await read(rig, channel, 1)) == [number]

    async def test_many_at_once(self, rig: Rig, publisher: Publisher) -> None:
        await publisher.check()
        await publisher.publish([])
        await publisher.publish([message(number) for number in range(523)])
        assert numbers(await read(rig, Channel.ITEMS, 523)) == list(range(523))

    async def test_all_that_text_can_be(self, rig: Rig, publisher: Publisher) -> None:
        await publisher.check()
        text = "ü\x00\x1b\u2028\ufffe\uffff🐟 'O:8:\"x\"'"
        await publisher.publish([message(1, text=text)])
        assert (await read(rig, Channel.ITEMS, 1))[0]["text"] == text

    async def test_the_largest_that_it_takes(self, rig: Rig, publisher: Publisher) -> None:
        await publisher.check()
        largest = [message(n, text="x" * (rig.most_bytes - 400)) for n in range(2)]
        assert [publisher.too_large(one) for one in largest] == ["", ""]
        await publisher.publish(largest)
        assert numbers(await read(rig, Channel.ITEMS, 2)) == [0, 1]
        reason = publisher.too_large(message(1, text="x" * rig.most_bytes))
        assert reason.startswith("too large to be published")

    async def test_the_broker_is_away_and_back(self, rig: Rig, publisher: Publisher) -> None:
        await publisher.check()
        await publisher.publish([message(1)])
        rig.network.cut()
        with pytest.raises(StorageBusy):
            await publisher.publish([message(2)])
        other = rig.connect()
        with pytest.raises(ConfigError, match="cannot be reached"):
            await other.check()
        rig.network.heal()

        async def is_published() -> bool:
            with suppress(StorageBusy):
                await publisher.publish([message(3)])
                return True
            return False

        await until("the broker to be back", is_published)
        assert {1, 3} <= set(numbers(await read(rig, Channel.ITEMS, 2)))

    async def test_told_to_stop_while_it_does_not_answer(
        self, rig: Rig, publisher: Publisher
    ) -> None:
        await publisher.check()
        rig.network.freeze()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await publisher.publish([message(1)])
        rig.network.heal()

    async def test_a_place_that_was_deleted_is_made_again(
        self, rig: Rig, publisher: Publisher
    ) -> None:
        await publisher.check()
        await publisher.publish([message(1, Channel.DEAD)])
        await rig.delete(Channel.DEAD)

        async def is_published() -> bool:
            with suppress(StorageBusy):
                await publisher.publish([message(2, Channel.DEAD)])
                return True
            return False

        await until("the place to be made", is_published)
        assert numbers(await read(rig, Channel.DEAD, 1)) == [2]
