"""What becomes of messages when the frontier knows their tasks as dead, or is full."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.feeds import open_source
from shoal.feeds.feeder import Fed, Feeder
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Outcome, Verdict
from shoal.publish.events import of_death
from support.feeds import Queue, RabbitQueue, RedisQueue
from support.rabbitmq_servers import RabbitServer
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.until import in_time, until

CRAWL = "shop"
URL = "https://shop.example/p/1"


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
async def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Frontier]:
    address = f"sqlite:///{tmp_path}/shoal.db"
    if request.param == "redis":
        address = request.getfixturevalue("redis_server").url
    async with frontier_at(address) as frontier:
        await frontier.start(CRAWL, Rules(robots=False, rate="none"))
        yield frontier


async def feed(queue: Queue, frontier: Frontier) -> Fed:
    """All there is."""
    source = open_source(queue.address)
    feeder = Feeder(source, frontier, CRAWL, until_empty=True)
    await in_time("the queue to be empty", feeder.run())
    await source.close()
    return feeder.fed


async def let_die(frontier: Frontier) -> None:
    """All that waits."""
    while leases := (await frontier.lease(CRAWL, Ask("w", 10))).leases:
        await frontier.finish(CRAWL, [Outcome(lease=x, verdict=Verdict.DEAD) for x in leases])


async def test_what_is_dead_is_known_unless_it_says_retry(
    frontier: Frontier, redis_server: RedisServer
) -> None:
    queue = RedisQueue(redis_server, "stream")
    await queue.send([URL.encode(), URL.replace("1", "2").encode()])
    assert (await feed(queue, frontier)).added == 2
    await let_die(frontier)
    assert (await frontier.stats(CRAWL)).dead == 2

    await queue.send([URL.encode()])
    assert await feed(queue, frontier) == Fed(messages=1, known=1)
    assert (await frontier.stats(CRAWL)).dead == 2

    await queue.send([b'{"url": "%s", "retry": true}' % URL.encode()])
    fed = await feed(queue, frontier)
    assert fed == Fed(messages=1, retried=1)
    assert fed.told == "0 added, 0 known already, 1 tried again, 0 rejected"
    stats = await frontier.stats(CRAWL)
    assert (stats.dead, stats.waiting, stats.added) == (1, 1, 2)
    (lease,) = (await frontier.lease(CRAWL, Ask("w", 10))).leases
    assert (lease.task.url, lease.task.retry_count, lease.task.retry) == (URL, 0, False)
    await queue.close()


async def test_what_was_published_of_a_dead_task_is_moved_back(
    frontier: Frontier, redis_server: RedisServer
) -> None:
    """By a tool of the broker, which adds `retry`. The task keeps what was not published of it."""
    queue = RedisQueue(redis_server, "list")
    form = URL.replace("1", "2")
    await queue.send(
        [
            b'{"url": "%s", "meta": {"a": 1}}' % URL.encode(),
            b'{"url": "%s", "method": "POST", "body": "a=1"}' % form.encode(),
        ]
    )
    assert (await feed(queue, frontier)).added == 2
    await let_die(frontier)
    published = {
        dead.task.url: of_death(CRAWL, dead.task, dead.fingerprint, "broken", "", 1.0).body
        for dead in await frontier.dead(CRAWL, 10)
    }

    await queue.send(list(published.values()))
    assert await feed(queue, frontier) == Fed(rejected=2)
    await queue.send([body[:-1] + b', "retry": true}' for body in published.values()])
    assert await feed(queue, frontier) == Fed(messages=1, retried=1, rejected=1)

    reasons = {(json.loads(one.body)["url"], one.reason) for one in await queue.rejected()}
    without_retry = 'it says that a task is dead: add "retry": true to have that tried again'
    assert reasons == {
        (URL, without_retry),
        (form, without_retry),
        (form, "the dead task had more than this message says: use shoal dead retry"),
    }
    (lease,) = (await frontier.lease(CRAWL, Ask("w", 10))).leases
    assert (lease.task.url, lease.task.meta, lease.task.retry_count) == (URL, {"a": 1}, 0)
    await queue.close()


async def test_a_full_frontier_stops_the_feed(
    tmp_path: Path, rabbitmq_server: RabbitServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits, says why, keeps no more in hand than it may, and goes on when there is room."""
    caplog.set_level(logging.WARNING, "shoal")
    count, size = 4000, 2000
    messages = [b"%s?%d&%s" % (URL.encode(), n, b"x" * size) for n in range(count)]
    queue = RabbitQueue(rabbitmq_server)
    await queue.send(messages)
    with RedisServer(tmp_path / "small", "--maxmemory", "6mb") as server:
        source = open_source(queue.address)
        async with frontier_at(server.url) as frontier:
            feeder = Feeder(source, frontier, CRAWL)
            feeding = asyncio.create_task(feeder.run())
            await until("it to be full", lambda: "is out of memory (maxmemory)" in caplog.text)
            assert 0 < feeder.fed.added < count
            assert "waiting for the frontier" in caplog.text
            assert await source.waiting() > 0, "not all was taken"
            await asyncio.sleep(1)
            assert feeder.fed.added < count
            assert not feeding.done()
            server.cli("CONFIG", "SET", "maxmemory", "0")
            await until("the rest", lambda: feeder.fed.added == count)
            feeder.drain()
            await in_time("the feeder to stop", feeding)
            assert (await frontier.stats(CRAWL)).waiting == count
            assert (feeder.fed.known, feeder.fed.rejected) == (0, 0)
        assert await source.waiting() == 0
        await source.close()
    await queue.close()


async def test_a_full_frontier_and_a_signal(
    tmp_path: Path, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not added stays in the queue, and comes again."""
    caplog.set_level(logging.WARNING, "shoal")
    queue = RedisQueue(redis_server, "list")
    await queue.send([URL.encode()])
    with RedisServer(tmp_path / "small", "--maxmemory", "1") as server:
        source = open_source(queue.address)
        async with frontier_at(server.url) as frontier:
            feeder = Feeder(source, frontier, CRAWL)
            feeding = asyncio.create_task(feeder.run())
            await until("it to be full", lambda: "is out of memory" in caplog.text)
            feeder.drain()
            await in_time("the feeder to stop", feeding)
        assert feeder.fed == Fed()
        assert await source.waiting() == 1
        await source.close()
    await queue.close()
