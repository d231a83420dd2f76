"""What `shoal worker` says of a crawl that is over before it was seen."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import pytest

from shoal.cli.joining import Joining
from shoal.config import Rules
from shoal.errors import UnknownCrawl
from shoal.fleet.looking import Glance, Onlooker
from shoal.frontier.values import CrawlState, Stats
from support.until import in_time


class _Looks:
    """Nobody has begun the crawl, until somebody has."""

    def __init__(self) -> None:
        self.state: CrawlState | None = None
        self.looked = asyncio.Event()

    async def look(self) -> Glance:
        self.looked.set()
        if self.state is None:
            raise UnknownCrawl("shop")
        return Glance(stats=Stats("shop", self.state, Rules(), created_at=0.0))


async def _told(state: CrawlState | None, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.set_level(logging.INFO, "shoal")
    looks = _Looks()
    joining = Joining(cast(Onlooker, looks), "shop", "sqlite:///shoal.db", lambda _: None)
    running = asyncio.create_task(joining.run())
    await in_time("a look", looks.looked.wait())
    looks.state = state
    joining.drain()
    await running
    return [record.getMessage() for record in caplog.records]


WAITING = "waiting for shop: nobody has started it at sqlite:///shoal.db"


async def test_a_crawl_that_came_and_went_between_two_looks_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await _told(CrawlState.FINISHED, caplog) == [WAITING, "shop is finished"]


async def test_what_nobody_began_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    assert await _told(None, caplog) == [WAITING]
