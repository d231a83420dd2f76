"""Who watches a crawl asks for its counters each time, and for more only now and then."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import AsyncMock, patch

from shoal.config import Rules, Settings
from shoal.core.ledger import SlotTime
from shoal.fleet import looking
from shoal.fleet.looking import Onlooker
from shoal.frontier import frontier_at
from shoal.frontier.values import Pulse


def pulse(worker: str, polite: float) -> Pulse:
    return Pulse(worker=worker, host="here", pid=1, version="1", slot_time=SlotTime(polite=polite))


async def test_the_slots_of_workers_that_were_seen_before_are_told(tmp_path: Path) -> None:
    settings = Settings(results="postgresql://db-host/shop")
    with patch.multiple(looking, CLOSER_EVERY_S=0.0, FOR_EACH_WORKER_S=0.0):
        async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
            await frontier.start("shop", Rules())
            onlooker = Onlooker(frontier, "shop", settings)
            await frontier.beat("shop", pulse("one", 10.0))
            first = await onlooker.look()
            assert first.slots == SlotTime()
            await frontier.beat("shop", pulse("one", 14.0))
            await frontier.beat("shop", pulse("two", 99.0))
            second = await onlooker.look()
    assert second.slots == SlotTime(polite=4.0)
    assert second.at >= first.at > 0
    assert second.store == "PostgreSQL"
    assert second.stats.crawl == "shop"


async def test_most_looks_are_one_question() -> None:
    frontier = AsyncMock()
    frontier.workers.return_value = frontier.hosts.return_value = []
    onlooker = Onlooker(frontier, "shop", Settings())
    with patch.object(looking, "Glance"):
        for _ in range(8):
            await onlooker.look()
    assert frontier.stats.await_count == 8
    assert (frontier.workers.await_count, frontier.hosts.await_count) == (1, 1)


async def test_the_larger_the_fleet_the_less_often_are_all_workers_asked_for() -> None:
    frontier, now = AsyncMock(), 0.0
    frontier.workers.return_value = [pulse(str(number), 1.0) for number in range(200)]
    frontier.hosts.return_value = []
    with (
        patch.object(looking, "Glance"),
        patch("shoal.runtime.patience.time.monotonic", lambda: now),
    ):
        onlooker = Onlooker(frontier, "shop", Settings())
        for second in range(30):
            now = float(second)
            await onlooker.look()
    assert frontier.stats.await_count == 30
    assert frontier.workers.await_count == 3
