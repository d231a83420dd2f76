"""Holding an account: for as long as its holder lives, and what it does with it ends with the
hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from msgspec.structs import replace

from shoal.core.identities import IdentityReport, LeasedIdentity
from shoal.errors import StorageBusy
from shoal.frontier.port import Frontier, Held
from shoal.worker import account_holds
from shoal.worker.account_holds import Hold
from support.until import in_time, until

FOUND = IdentityReport()


class Holds:
    """A frontier that knows one hold, by its last token."""

    def __init__(self) -> None:
        self.until = 1.0
        self.renewed = 0
        self.is_lost = self.is_away = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def hold_on(self, held: Held, seconds: float) -> Held | None:
        if self.is_away:
            raise StorageBusy("away")
        if self.is_lost or held.until != self.until:
            return None
        self.until += 1.0
        self.renewed += 1
        await in_time("leave to answer", self.may_answer.wait())
        return replace(held, until=self.until)

    async def let_go(self, held: Held, report: IdentityReport) -> bool:
        return not self.is_lost and held.until == self.until

    @property
    def hold(self) -> Hold:
        return Hold(cast(Frontier, self), Held(LeasedIdentity("shop#alice"), None, self.until))


async def wait_for_its_end(hold: Hold, then: Callable[[], None] = lambda: None) -> None:
    """Do something that takes for ever."""
    async with hold.lasting():
        try:
            await in_time("the end of its hold", asyncio.Event().wait())
        finally:
            then()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_holds, "HOLD_ON_EVERY_S", 0.001)


async def test_lasts_as_long_as_it_is_needed() -> None:
    holds = Holds()
    hold = holds.hold
    async with hold.lasting():
        await until("it to be renewed", lambda: holds.renewed > 3)
    assert await hold.let_go(FOUND)


async def test_one_that_is_lost_ends_what_was_begun() -> None:
    holds = Holds()
    hold = holds.hold
    holds.is_lost = True
    with pytest.raises(TimeoutError):
        await wait_for_its_end(hold)
    assert not await hold.let_go(FOUND)


async def test_a_frontier_that_is_away_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_holds, "HOLD_S", 0.05)
    holds = Holds()
    holds.is_away = True

    def come_back() -> None:
        holds.is_away = False

    with pytest.raises(TimeoutError):
        await wait_for_its_end(holds.hold, come_back)


async def test_its_end_waits_for_a_word_that_is_on_its_way() -> None:
    """Else it would end with a token that is void by then, and last as if nobody had ended it."""
    holds = Holds()
    holds.may_answer.clear()
    hold = holds.hold
    async with hold.lasting():
        await until("it to be renewed", lambda: holds.renewed)
        asyncio.get_running_loop().call_later(0.01, holds.may_answer.set)
    assert await hold.let_go(FOUND)
