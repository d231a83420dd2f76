"""A frontier whose calls wait while the store is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.errors import StorageBusy, UnknownCrawl
from shoal.frontier.board import Leader
from shoal.frontier.patient import patient
from shoal.frontier.sqlite.board import SqliteNotes
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Added, Entry, Stats
from shoal.runtime import patience
from support.frontiers import CRAWL, open_rules, pages


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.001)


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[SqliteFrontier]:
    frontier = SqliteFrontier(tmp_path / "frontier.db")
    yield frontier
    await frontier.close()


def away_once(monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
    """The first call of a method finds the store away."""
    answer, is_first = getattr(owner, method), iter([True])

    async def call(*args: object, **options: object) -> object:
        if next(is_first, False):
            raise StorageBusy("away")
        return await answer(*args, **options)

    monkeypatch.setattr(owner, method, call)


async def test_a_call_is_made_again(
    frontier: SqliteFrontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[Entry] = pages(2)
    for method in ("start", "add"):
        away_once(monkeypatch, SqliteFrontier, method)
    started: Stats = await patient(frontier).start(CRAWL, open_rules(), again=False)
    assert started.crawl == CRAWL
    assert await patient(frontier).add(CRAWL, entries) == Added(added=2)


async def test_so_is_one_of_its_notes(
    frontier: SqliteFrontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    away_once(monkeypatch, SqliteNotes, "lead")
    assert await patient(frontier).notes.lead("one", 5.0) == Leader("one", 1)


async def test_what_will_not_pass_is_raised(frontier: SqliteFrontier) -> None:
    with pytest.raises(UnknownCrawl, match=CRAWL):
        await patient(frontier).stats(CRAWL)
