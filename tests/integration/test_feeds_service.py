"""The feeds of shoal.toml, run by `shoal serve` and by workers."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shoal.feeds import service
from shoal.feeds.service import Feeds
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from support.feeds import RabbitQueue, RedisQueue
from support.links import numbered_pages, put_spider
from support.processes import Folder
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer
from support.server_process import free_port
from support.sites import Site, serving
from support.until import in_time, until, until_now

PAGES = 4


def table(crawl: str, address: str) -> str:
    return f'[[feed]]\ncrawl = "{crawl}"\naddress = "{address}"\n'


def urls(count: int, site: str = "https://shop.example/") -> list[bytes]:
    return [f"{site}{number}".encode() for number in range(1, count + 1)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, {"SHOAL_RATE": "none"})


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(PAGES))) as site:
        yield site


def added(folder: Folder, crawl: str) -> int:
    try:
        return folder.stats(crawl).added
    except Exception:
        return 0


def test_serve_runs_all_of_them(folder: Folder, redis_server: RedisServer) -> None:
    """Each by itself; the file is read again; SIGTERM ends them; no password is shown."""
    one, other = RedisQueue(redis_server, "list"), RedisQueue(redis_server, "stream")
    nowhere = f"amqp://me:hunter2@127.0.0.1:{free_port()}/urls"
    feeds = table("away", nowhere) + table("one", one.address)
    folder.write("shoal.toml", feeds)
    asyncio.run(one.send(urls(5)))
    with folder.running("serve") as serving, folder.running("serve") as beside:
        until_now("the first feed", lambda: added(folder, "one") == 5)
        until_now("the other's warning", lambda: "waiting for the feed amqp" in serving.err)
        folder.write("shoal.toml", feeds + table("other", other.address))
        asyncio.run(other.send(urls(3)))
        until_now("the feed that was added", lambda: added(folder, "other") == 3)
        folder.write("shoal.toml", "[[feed]]")
        until_now("news", lambda: "the feeds stay as they were" in serving.err)
        asyncio.run(other.send(urls(7)))
        until_now("the feed goes on", lambda: added(folder, "other") == 7)
        for process in (serving, beside):
            process.send(signal.SIGTERM)
            assert process.wait().code == 0
        said = serving.err + beside.err
    assert "Traceback" not in said
    assert "amqp://***@127.0.0.1" in said
    assert "hunter2" not in said
    assert redis_server.cli("LLEN", one.name) == "0"
    assert redis_server.cli("XLEN", other.name) == "0"


def test_a_worker_runs_those_of_its_crawl(
    folder: Folder, redis_server: RedisServer, site: Site
) -> None:
    own, foreign = RedisQueue(redis_server, "list"), RedisQueue(redis_server, "list")
    put_spider(folder, [site])
    folder.write("shoal.toml", table("links", own.address) + table("foreign", foreign.address))
    assert folder.shoal("crawl", "links.py", "--max-depth", "0").code == 0
    asyncio.run(own.send(urls(PAGES, site.url)))
    asyncio.run(foreign.send(urls(1)))
    with folder.running("worker", "links.py") as worker:
        until_now("the pages", lambda: folder.stats("links").done == PAGES + 1)
        worker.send(signal.SIGTERM)
        ended = worker.wait()
    assert ended.code == 0, ended
    assert f"feeding links from {own.address}" in ended.err
    assert redis_server.cli("LLEN", foreign.name) == "1"


@pytest.mark.parametrize("words", [("serve",), ("worker", "links.py")])
def test_mistakes_are_one_line(folder: Folder, words: tuple[str, ...]) -> None:
    folder.write("links.py", "from shoal import Spider\n\nclass Links(Spider):\n    pass\n")
    folder.write("shoal.toml", table("links", "amqp://me:hunter2@rabbit"))
    ended = folder.process(*words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended
    assert "shoal.toml: feed 1: address: amqp://me:***@rabbit: which queue?" in ended.err


@asynccontextmanager
async def feeding(frontier: Frontier, folder: Path) -> AsyncIterator[None]:
    feeds = Feeds(frontier, folder=folder)
    running = asyncio.create_task(feeds.run())
    try:
        yield
    finally:
        feeds.drain()
        await in_time("the feeds to stop", running)


async def waiting_in(frontier: Frontier, crawl: str) -> int:
    try:
        return (await frontier.stats(crawl)).waiting
    except Exception:
        return 0


async def test_what_is_wrong_is_said_and_tried_again(
    tmp_path: Path,
    rabbitmq_server: RabbitServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A queue that is not there yet, as one example of all that may be wrong with one feed."""
    monkeypatch.setattr(service, "RETRY_S", 0.2)
    queue = RabbitQueue(rabbitmq_server)
    (tmp_path / "shoal.toml").write_text(table("shop", queue.address))
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        with caplog.at_level(logging.ERROR, "shoal"):
            async with feeding(frontier, tmp_path):
                await until("the complaint", lambda: "declare it first" in caplog.text)
                await queue.send(urls(3))

                async def has_three() -> bool:
                    return await waiting_in(frontier, "shop") == 3

                await until("the messages", has_three)
    await queue.close()
    assert "trying again" in caplog.text
    assert "p%40ss" not in caplog.text


async def test_a_feed_that_was_removed_stops(
    tmp_path: Path, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "shoal")
    queue = RedisQueue(redis_server, "list")
    file = tmp_path / "shoal.toml"
    file.write_text(table("shop", queue.address))
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        async with feeding(frontier, tmp_path):
            await queue.send(urls(2))

            async def is_fed() -> bool:
                return await waiting_in(frontier, "shop") == 2

            await until("the messages", is_fed)
            file.write_text("")
            await until("the feed to stop", lambda: "no longer feeding" in caplog.text)
            await queue.send(urls(4))
        assert await waiting_in(frontier, "shop") == 2
        assert redis_server.cli("LLEN", queue.name) == "4"
    await queue.close()
