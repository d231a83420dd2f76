"""Feeds: tasks from queues of others, on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.errors import ConfigError, StorageBusy
from shoal.feeds import open_source, redis_list, redis_stream, sqs
from shoal.feeds.feeder import PAUSED, Fed, Feeder
from shoal.feeds.port import Message, Source
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control
from support.feeds import Queue, RabbitQueue, RedisQueue, SqsQueue
from support.rabbitmq_servers import RabbitServer
from support.rarely import first_then_rare
from support.sqs_servers import Moto, SqsServer
from support.until import in_time, until

CRAWL = "shop"
HELD_S = 2
MOTO_HELD_S = 12
"""It takes seconds for a hundred messages."""


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsServer]:
    with Moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(params=first_then_rare("amqp", "sqs", "moto", "list", "stream"))
async def queue(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Queue]:
    """One of each kind, from which what a dead one held comes again soon."""
    for module in (sqs, redis_list, redis_stream):
        monkeypatch.setattr(module, "HELD_S", MOTO_HELD_S if request.param == "moto" else HELD_S)
    queue: Queue
    if request.param == "amqp":
        queue = RabbitQueue(request.getfixturevalue("rabbitmq_server"))
    elif request.param in ("sqs", "moto"):
        name = {"sqs": "sqs_server"}.get(request.param, request.param)
        server: SqsServer = request.getfixturevalue(name)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        queue = SqsQueue(server.environment)
    else:
        queue = RedisQueue(request.getfixturevalue("redis_server"), request.param)
    await queue.send([])
    yield queue
    await queue.close()


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        await frontier.start(CRAWL, Rules(allowed_hosts=("shop.example",)))
        yield frontier


@pytest.fixture
async def source(queue: Queue) -> AsyncIterator[Source]:
    source = open_source(queue.address)
    yield source
    await source.close()


async def feed(source: Source, frontier: Frontier) -> Fed:
    """All there is."""
    feeder = Feeder(source, frontier, CRAWL, until_empty=True)
    await in_time("the queue to be empty", feeder.run())
    return feeder.fed


async def taken(source: Source, count: int) -> list[Message]:
    found = list[Message]()

    async def all_taken() -> bool:
        found.extend(await source.take(count, 1))
        return len(found) >= count

    await until(f"{count} messages", all_taken)
    return found


def some_urls(count: int) -> list[bytes]:
    return [b"https://shop.example/p/%d" % number for number in range(count)]


class TestFeeding:
    async def test_all_that_is_there(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        task = b'{"url": "https://shop.example/x", "priority": 7}'
        await queue.send([*some_urls(120), task, *some_urls(3)])
        assert await feed(source, frontier) == Fed(messages=124, added=121, known=3)
        assert (await frontier.stats(CRAWL)).waiting == 121
        assert await feed(source, frontier) == Fed()

    async def test_what_is_no_task_is_put_aside(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        bad = [b'{"uri": 1}', b"https://other.example/", b"ftp://shop.example/"]
        await queue.send([*bad, *some_urls(2)])
        fed = await feed(source, frontier)
        assert (fed.added, fed.rejected, fed.waiting) == (2, 3, 0)
        reasons = {aside.body: aside.reason for aside in await queue.rejected()}
        assert set(reasons) == {body.decode() for body in bad}
        assert "unknown field `uri`" in reasons['{"uri": 1}']
        assert "host not allowed" in reasons["https://other.example/"]

    async def test_what_a_dead_one_held_comes_again(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        await queue.send(some_urls(5))
        dying = open_source(queue.address)
        await taken(dying, 5)
        await dying.close()
        assert (await feed(source, frontier)).added == 5

    async def test_nothing_is_added_twice(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        """Not even what is to be fetched again: its message has an id."""
        again = b'{"url": "https://shop.example/p/1", "dont_filter": true}'
        await queue.send([again, again, *some_urls(3)])
        dying = Dying(open_source(queue.address))
        with pytest.raises(Killed):
            await feed(dying, frontier)
        await dying.close()
        before = (await frontier.stats(CRAWL)).added
        assert before > 0
        assert (await feed(source, frontier)).known == before
        assert (await frontier.stats(CRAWL)).added == 5

    async def test_a_crawl_that_nobody_has_started(
        self, queue: Queue, source: Source, tmp_path: Path
    ) -> None:
        await queue.send(some_urls(2))
        async with frontier_at(f"sqlite:///{tmp_path}/other.db") as frontier:
            assert (await feed(source, frontier)).added == 2

    async def test_while_paused_nothing_is_taken(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        await frontier.control(CRAWL, Control.PAUSE)
        await queue.send(some_urls(3))
        feeder = Feeder(source, frontier, CRAWL)
        feeding = asyncio.create_task(feeder.run())
        await asyncio.sleep(0.7)
        assert (feeder.fed, feeder.held_up) == (Fed(), PAUSED)
        await frontier.control(CRAWL, Control.RESUME)
        await until("the messages to be fed", lambda: feeder.fed.added == 3)
        feeder.drain()
        await in_time("the feeder to stop", feeding)

    async def test_a_crawl_that_was_cancelled(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        await frontier.control(CRAWL, Control.CANCEL)
        await queue.send(some_urls(1))
        with pytest.raises(ConfigError, match="was cancelled"):
            await feed(source, frontier)
        assert await source.waiting() == 1

    async def test_messages_that_come_later(
        self, queue: Queue, source: Source, frontier: Frontier
    ) -> None:
        feeder = Feeder(source, frontier, CRAWL)
        feeding = asyncio.create_task(feeder.run())
        for count in (3, 6):
            await queue.send(some_urls(count))
            await until(f"{count} tasks", lambda count=count: feeder.fed.added == count)  # type: ignore[misc]
        feeder.drain()
        await in_time("the feeder to stop", feeding)


class Killed(Exception):
    """Stands for kill -9."""


class Dying:
    """A source whose process is killed when the frontier has the tasks, and the source does not
    know it."""

    def __init__(self, source: Source) -> None:
        self.shown = source.shown
        self.take, self.reject = source.take, source.reject
        self.waiting, self.close = source.waiting, source.close

    async def done(self, messages: object) -> None:
        raise Killed


class TestRabbit:
    async def test_the_broker_goes_and_comes(
        self, rabbitmq_server: RabbitServer, frontier: Frontier
    ) -> None:
        queue = RabbitQueue(rabbitmq_server)
        await queue.send(some_urls(10))
        source = open_source(queue.address)
        feeder = Feeder(source, frontier, CRAWL)
        feeding = asyncio.create_task(feeder.run())
        await until("the first messages", lambda: feeder.fed.added == 10)
        rabbitmq_server.kill()
        rabbitmq_server.start()

        async def is_sent() -> bool:
            try:
                await queue.send(some_urls(20))
            except StorageBusy:
                return False
            return True

        await until("the broker to take messages", is_sent)
        await until("the other messages", lambda: feeder.fed.added == 20)
        feeder.drain()
        await in_time("the feeder to stop", feeding)
        await source.close()
        await queue.close()

    async def test_a_queue_that_is_deleted(
        self, rabbitmq_server: RabbitServer, frontier: Frontier
    ) -> None:
        queue = RabbitQueue(rabbitmq_server)
        await queue.send(some_urls(1))
        source = open_source(queue.address)
        feeder = Feeder(source, frontier, CRAWL)
        feeding = asyncio.create_task(feeder.run())
        await until("the first message", lambda: feeder.fed.added == 1)
        rabbitmq_server.ctl("delete_queue", queue.name)
        with pytest.raises(ConfigError, match="declare it first"):
            await in_time("the feeder to notice", feeding)
        await source.close()
        await queue.close()

    async def test_headers_that_leave_no_room_for_a_reason(
        self, rabbitmq_server: RabbitServer, frontier: Frontier
    ) -> None:
        """The broker closes the connection of whoever sends more than fits into a frame."""
        queue = RabbitQueue(rabbitmq_server)
        await queue.send(some_urls(1))
        await queue.send_with_headers(b"no URL", {"trace": "x" * 131_000})
        await queue.send_with_headers(b"nor this", {"trace": "x"})
        source = open_source(queue.address)
        fed = await feed(source, frontier)
        assert (fed.added, fed.rejected, fed.waiting) == (1, 2, 0)
        assert {aside.body for aside in await queue.rejected()} == {"no URL", "nor this"}
        await source.close()
        await queue.close()


async def test_a_message_of_sqs_that_leaves_no_room_for_a_reason(
    sqs_server: SqsServer, frontier: Frontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sqs_server.environment.items():
        monkeypatch.setenv(name, value)
    queue = SqsQueue(sqs_server.environment)
    await queue.send(["é".encode() * 131_072])
    source = open_source(queue.address)
    assert await feed(source, frontier) == Fed(rejected=1)
    (aside,) = await queue.rejected()
    assert aside.body == "é" * sqs.KEPT_CHARACTERS
    assert "longer than" in aside.reason
    await source.close()
    await queue.close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("kafka://h/q", "no feed for"),
        ("amqp://u:hush@h", "which queue"),
        ("amqp://h/a/b/c", "which queue"),
        ("redis://h", "add \\?key=name"),
        ("redis://h?key=x&type=set", "type is list or stream"),
        ("sqs://eu-west-1", "write sqs://region/name"),
    ],
)
def test_no_such_source(address: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        open_source(address)
    assert "hush" not in str(raised.value)
