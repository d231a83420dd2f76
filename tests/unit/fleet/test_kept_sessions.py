"""A crawl that has gone with accounts does not go on without them by mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from shoal.config import Rules
from shoal.core.exits import LaneState
from shoal.errors import ConfigError, UnknownCrawl
from shoal.fleet.kept_pools import refuse_lost_pools
from shoal.fleet.kept_sessions import refuse_lost_sessions
from shoal.frontier.port import Frontier
from shoal.frontier.values import CrawlState, Stats


class Known:
    """A frontier with one crawl, in whose lanes tasks wait."""

    def __init__(self, rules: Rules | None, lanes: Sequence[str] = ()) -> None:
        self._rules = rules
        self._lanes = lanes

    async def stats(self, crawl: str) -> Stats:
        if self._rules is None:
            raise UnknownCrawl(crawl)
        return Stats(crawl=crawl, state=CrawlState.RUNNING, rules=self._rules, created_at=0.0)

    async def lanes(self, crawl: str, limit: int) -> list[LaneState]:
        return [LaneState(host="shop.example", pool=pool, waiting=1) for pool in self._lanes]

    @property
    def as_frontier(self) -> Frontier:
        return cast(Frontier, self)


SHOP = Rules(sessions=("shop",), session="shop#alice")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (None, Rules()),
        (Rules(), Rules()),
        (SHOP, SHOP),
        (SHOP, Rules(sessions=("shop",), session="none")),
        (Rules(session="none"), Rules()),
    ],
)
async def test_who_knows_what_he_does_goes_on(before: Rules | None, now: Rules) -> None:
    frontier = Known(before, ["@shop"]).as_frontier
    await refuse_lost_sessions(frontier, "big", now)
    await refuse_lost_pools(frontier, "big", now)


async def test_a_session_is_not_forgotten() -> None:
    with pytest.raises(ConfigError, match=r"^crawl 'big' has gone with session shop#alice so far"):
        await refuse_lost_sessions(Known(SHOP).as_frontier, "big", Rules(sessions=("shop",)))


@pytest.mark.parametrize("lane", ["@shop", "@shop#alice"])
async def test_nor_what_waits_for_its_accounts(lane: str) -> None:
    now = Rules(session="none")
    await refuse_lost_sessions(
        Known(SHOP, ["dc", "@club"]).as_frontier, "a", Rules(session="none", sessions=("club",))
    )
    with pytest.raises(
        ConfigError, match=r"^tasks of crawl 'big' wait for accounts of session shop, which is not"
    ):
        await refuse_lost_sessions(Known(SHOP, [lane]).as_frontier, "big", now)


async def test_what_waits_for_accounts_waits_for_no_pool() -> None:
    before = Rules(pools=("dc",), sessions=("shop",))
    await refuse_lost_pools(Known(before, ["@shop"]).as_frontier, "big", Rules())
