"""What a worker's reports, and the end of a crawl, have to tell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control, Outcome, Verdict
from shoal.publish.formats import Format
from shoal.publish.port import Channel, Message, larger_than
from shoal.publish.publications import NOTES_KEPT, TOLD, Publications
from shoal.worker.report import Report

CRAWL = "shop"
MOST = 1_000


class Listener:
    """A publisher that remembers."""

    shown = "here"

    def __init__(self) -> None:
        self.heard: list[Message] = []

    async def check(self, *, makes: bool = True) -> None: ...

    def too_large(self, message: Message) -> str:
        return larger_than(MOST, len(message.wire.body))

    async def publish(self, messages: Sequence[Message]) -> None:
        self.heard += messages

    async def close(self) -> None: ...

    def of(self, channel: Channel) -> list[Message]:
        return [one for one in self.heard if one.channel is channel]


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        await frontier.start(CRAWL, Rules(rate="none", robots=False, max_losses=1))
        yield frontier


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def publications(listener: Listener, frontier: Frontier) -> Publications:
    return Publications(CRAWL, listener, Format("plain", {}), frontier)


def row(key: str, data: bytes = b"{}") -> StoredItem:
    return StoredItem(
        kind="k", key=key, data=data, url="https://x.example/", fingerprint=b"", scraped_at=1.0
    )


async def leased(frontier: Frontier, *urls: str) -> list[Report]:
    admission = Admission(Rules())
    await frontier.add(CRAWL, [admission.admit(Task(url=url)) for url in urls])
    grant = await frontier.lease(CRAWL, Ask("w", len(urls)))
    return [Report(Outcome(lease=lease, verdict=Verdict.DONE)) for lease in grant.leases]


async def test_items_and_deaths(
    frontier: Frontier, listener: Listener, publications: Publications
) -> None:
    one, two = await leased(frontier, "https://x.example/1", "https://y.example/2")
    one.items = [row("a"), row("b")]
    two.outcome.verdict, two.outcome.reason = Verdict.DEAD, "404"
    send = publications.prepare([one, two])
    await send()
    await send()
    ids = [one.id for one in listener.heard]
    assert ids[:3] == ids[3:], "repeated as it was"
    assert [one.channel for one in listener.heard[:3]] == ["items", "items", "dead"]
    assert json.loads(listener.heard[2].wire.body)["reason"] == "404"


async def test_what_cannot_be_published_is_noted_and_stays(
    frontier: Frontier, listener: Listener, publications: Publications
) -> None:
    (report,) = await leased(frontier, "https://x.example/1")
    large, odd = row("large", b'{"a":"%b"}' % (b"x" * MOST)), row("odd", b'{"a":"\\ud800"}')
    report.items = [large, row("small"), odd]
    await publications.prepare([report])()
    assert [json.loads(one.wire.body)["_key"] for one in listener.heard] == ["small"]
    assert report.items == [large, row("small"), odd]
    assert [one.reason.partition(":")[0] for one in report.rejected] == [
        "too large to be published",
        "cannot be published",
    ]
    assert report.outcome.rejected == 2


async def test_the_end_is_told_once_by_all(
    frontier: Frontier, listener: Listener, publications: Publications
) -> None:
    (report,) = await leased(frontier, "https://x.example/1")
    await frontier.control(CRAWL, Control.SEAL)
    await frontier.finish(CRAWL, [report.outcome])
    stats = await frontier.stats(CRAWL)
    other = Publications(CRAWL, listener, Format("plain", {}), frontier)
    for each in (publications, other, publications):
        await each.finished(stats)
    (end,) = listener.heard
    assert json.loads(end.wire.body)["counters"]["done"] == 1


async def test_notes_of_ends_are_not_kept_for_ever(
    frontier: Frontier, publications: Publications, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert NOTES_KEPT >= 100
    monkeypatch.setattr("shoal.publish.publications.NOTES_KEPT", 5)
    for number in range(10):
        await frontier.notes.write(TOLD, f"other{number}", b"x")
    await publications.finished(await frontier.stats(CRAWL))
    kept = await frontier.notes.all(TOLD)
    assert len(kept) == 5
    assert CRAWL in kept


async def test_those_that_took_their_workers_along_are_told_at_the_end(
    frontier: Frontier, listener: Listener, publications: Publications
) -> None:
    await leased(frontier, "https://x.example/1")
    await frontier.control(CRAWL, Control.SEAL)
    await frontier.release(CRAWL, "w")
    stats = await frontier.stats(CRAWL)
    assert (stats.dead, stats.lost) == (1, 1)
    await publications.finished(stats)
    (death,) = listener.of(Channel.DEAD)
    assert json.loads(death.wire.body)["reason"].startswith("poison: ")
    assert len(listener.of(Channel.FINISHED)) == 1
