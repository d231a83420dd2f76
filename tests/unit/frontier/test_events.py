"""What people did to a crawl: noted by several at once, and bounded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.errors import StorageBusy
from shoal.frontier.board import Notes
from shoal.frontier.events import (
    EVENTS,
    KEPT,
    LONGEST,
    SEEDED,
    events_of,
    forget_events_of_all_but,
    note_event,
)
from shoal.frontier.sqlite.frontier import SqliteFrontier

CRAWL = "a / 'crawl'"


@pytest.fixture
async def notes(tmp_path: Path) -> AsyncIterator[Notes]:
    frontier = SqliteFrontier(tmp_path / "frontier.db")
    yield frontier.notes
    await frontier.close()


async def texts(notes: Notes) -> list[str]:
    return [event.text for event in await events_of(notes, CRAWL)]


async def test_of_many_at_once_each_is_noted(notes: Notes) -> None:
    await asyncio.gather(*(note_event(notes, CRAWL, "x", str(n), by="web") for n in range(10)))
    assert sorted(map(int, await texts(notes))) == list(range(10))


async def test_the_last_hundred_are_kept(notes: Notes) -> None:
    for number in range(KEPT + 5):
        await note_event(notes, CRAWL, "x", f"{number} {'y' * 999}", by="web")
    kept = await texts(notes)
    assert [text.partition(" ")[0] for text in kept] == [str(n) for n in range(5, KEPT + 5)]
    assert {len(text) for text in kept} == {LONGEST}


async def test_seeds_that_come_one_by_one_are_one_event(notes: Notes) -> None:
    for event in (SEEDED, SEEDED, "crawl.paused", SEEDED):
        await note_event(notes, CRAWL, event, by="web", once_in_s=60.0)
    assert [at.event for at in await events_of(notes, CRAWL)] == [SEEDED, "crawl.paused", SEEDED]


async def test_what_is_no_list_of_events_is_written_over(notes: Notes) -> None:
    await notes.write(EVENTS, CRAWL, b'[{"at": "never"}]')
    assert await events_of(notes, CRAWL) == []
    await note_event(notes, CRAWL, "x", "good", by="web")
    assert await texts(notes) == ["good"]


async def test_those_of_crawls_that_are_gone_are_forgotten(notes: Notes) -> None:
    for crawl in (CRAWL, "gone"):
        await note_event(notes, crawl, "x", by="web")
    leader = await notes.lead("us", 5.0)
    assert leader is not None
    await forget_events_of_all_but(notes, {CRAWL}, leader)
    assert list(await notes.all(EVENTS)) == [CRAWL]


async def test_what_cannot_be_noted_was_done_all_the_same(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def busy(*_: object) -> bool:
        raise StorageBusy("away")

    monkeypatch.setattr(notes, "swap", busy)
    with caplog.at_level(logging.WARNING, "shoal"):
        await note_event(notes, CRAWL, "crawl.paused", by="web")
    assert "is not noted: away" in caplog.text
