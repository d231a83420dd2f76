"""A worker's signs of life, and the inbox that they tell of."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from shoal.config import Rules
from shoal.errors import ConfigError, StorageFailed, UnknownCrawl
from shoal.frontier.port import Frontier
from shoal.frontier.values import Added, CrawlState, Entry, Pulse, Stats
from shoal.runtime.process import rss_bytes
from shoal.version import __version__
from shoal.worker import heartbeat
from shoal.worker.heartbeat import Heartbeat
from shoal.worker.meter import Meter
from support.until import until


class Listener:
    """A frontier, as far as a heartbeat knows it."""

    def __init__(self) -> None:
        self.heard: list[Pulse] = []
        self.state = CrawlState.RUNNING
        self.inbox: list[bytes] = []
        self.queued: list[str] = []
        self.errors: list[Exception] = []

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        self.heard.append(pulse)
        if self.errors:
            raise self.errors.pop(0)
        return bool(self.inbox)

    async def stats(self, crawl: str) -> Stats:
        inbox = len(self.inbox)
        return Stats(crawl=crawl, state=self.state, rules=Rules(), created_at=0.0, inbox=inbox)

    async def collect(self, crawl: str, read: Callable[[bytes], Entry]) -> Added:
        if self.state is CrawlState.CANCELLED:
            raise ConfigError("cancelled")
        texts, self.inbox = self.inbox, []
        self.queued += [read(text).task.url for text in texts]
        return Added(len(texts))

    async def until_heard(self, times: int) -> None:
        await until(f"{times} heartbeats", lambda: len(self.heard) >= times)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    monkeypatch.setattr(heartbeat, "BEAT_EVERY_S", 0.001)
    return Listener()


@asynccontextmanager
async def beating(listener: Listener) -> AsyncIterator[Meter]:
    meter = Meter(4)
    own = Heartbeat(cast(Frontier, listener), "crawl", "machine:7", meter, lambda: 3, "5eed")
    task = asyncio.create_task(own.run())
    try:
        yield meter
        assert not task.done(), "it beats for as long as the worker lives"
    finally:
        task.cancel()


async def test_says_who_and_how_busy(listener: Listener) -> None:
    async with beating(listener) as meter:
        await listener.until_heard(2)
        meter.pages += 5
        meter.backlog = 2
        meter.fetches.note(0.3)
        await listener.until_heard(len(listener.heard) + 2)
    last = listener.heard[-1]
    assert (last.worker, last.pid, last.version) == ("machine:7", os.getpid(), __version__)
    assert last.spider_version == "5eed"
    assert (last.in_flight, last.pages, last.backlog) == (3, 5, 2)
    assert (last.fetches.count, last.fetches.total_s) == (1, 0.3)
    assert last.cpu_s > 0
    assert last.pages_per_s > 0
    assert last.rss_bytes > 10**6
    assert (last.slots, last.memory_bytes > 10**8, last.cores > 0) == (4, True, True)
    assert last.slot_time.starved == pytest.approx(last.slot_time.total)
    assert last.lately is not None
    assert (last.lately.pages, last.lately.fetches) == (5, 1)
    assert 0 < last.lately.seconds < 120


async def test_the_rate_is_that_of_the_last_beats(listener: Listener) -> None:
    async with beating(listener) as meter:
        meter.pages += 5
        await listener.until_heard(heartbeat.RECENT_BEATS + 2)
    assert listener.heard[-1].pages_per_s == 0.0


async def test_a_crawl_that_is_not_there_is_no_error(listener: Listener) -> None:
    listener.errors = [UnknownCrawl("crawl")] * 3
    async with beating(listener):
        await listener.until_heard(5)


async def test_a_store_that_has_failed_is_one(listener: Listener) -> None:
    listener.errors = [StorageFailed("disk full")]
    own = Heartbeat(cast(Frontier, listener), "crawl", "machine:7", Meter(4), lambda: 0)
    with pytest.raises(StorageFailed):
        await own.run()


@pytest.mark.parametrize("state", [CrawlState.RUNNING, CrawlState.PAUSED, CrawlState.FINISHED])
async def test_seeds_that_others_left_are_collected(listener: Listener, state: CrawlState) -> None:
    listener.state = state
    async with beating(listener):
        await listener.until_heard(1)
        listener.inbox = [b"http://a.example/1", b'{"url": "http://a.example/2"}']
        await listener.until_heard(4)
    assert listener.queued == ["http://a.example/1", "http://a.example/2"]


@pytest.mark.parametrize("state", [CrawlState.NEW, CrawlState.CANCELLED])
async def test_not_for_a_crawl_that_takes_none(listener: Listener, state: CrawlState) -> None:
    listener.state, listener.inbox = state, [b"http://a.example/1"]
    async with beating(listener):
        await listener.until_heard(4)
    assert (listener.queued, len(listener.inbox)) == ([], 1)


async def test_a_crawl_that_is_cancelled_meanwhile_is_no_error(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener.inbox = [b"http://a.example/1"]

    async def refuse(*_: object) -> Added:
        raise ConfigError("cancelled")

    monkeypatch.setattr(listener, "collect", refuse)
    async with beating(listener):
        await listener.until_heard(4)


def test_the_memory_in_use_is_more_than_nothing_and_less_than_all() -> None:
    assert 10**6 < rss_bytes() < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
