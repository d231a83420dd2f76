"""JSON forms keep the names that scripts know, whatever Python calls them."""

from __future__ import annotations

import msgspec

from shoal.coordinator.plan import Planned
from shoal.coordinator.runs import Run
from shoal.frontier.board import Leader
from shoal.frontier.values import Added
from shoal.insight.json import run_json, schedules_json, seeded_json

RUN = Run(crawl="shop@2026-11-15T03:00", schedule="shop", due_at=1.0, fired_at=2.0, is_seeded=True)
RUN_FIELDS = [
    *("crawl", "schedule", "slot", "fired_at", "previous", "deadline", "planted", "state"),
    *("reason", "started_at", "ended_at", "total", "done", "failed", "dropped", "items"),
    *("unchanged", "gone", "is_forgotten", "is_late"),
]


def test_a_run_has_all_its_fields_by_the_names_of_its_note() -> None:
    shown = run_json(RUN)
    assert list(shown) == RUN_FIELDS
    assert (shown["slot"], shown["planted"], shown["is_late"]) == (1.0, True, False)


def test_a_note_of_a_run_is_written_and_read_by_its_old_names() -> None:
    note = msgspec.json.encode(RUN)
    assert note == (
        b'{"crawl":"shop@2026-11-15T03:00","schedule":"shop","slot":1.0,"fired_at":2.0,'
        b'"planted":true}'
    )
    assert msgspec.json.decode(note, type=Run) == RUN


def test_schedules_are_listed_with_their_last_run_and_the_leader() -> None:
    planned = Planned(
        name="shop",
        target="shop.py",
        cron="0 3 * * *",
        timezone="UTC",
        next_at=None,
        next_local=None,
        is_paused=True,
        running=[],
        last=RUN,
    )
    listed = schedules_json([planned], Leader("host:1", 7))
    assert listed["leader"] == "host:1"
    (shown,) = listed["schedules"]
    assert list(shown) == [
        *("name", "target", "cron", "timezone", "next_at", "next_local", "is_paused", "running"),
        *("late", "last"),
    ]
    assert shown["last"] == run_json(RUN)
    assert schedules_json([], None) == {"leader": None, "schedules": []}


def test_what_was_seeded() -> None:
    shown = seeded_json("shop", Added(2, 1, 4), sitemaps=1, bad=3)
    counts = {"added": 2, "duplicates": 1, "retried": 4, "sitemaps": 1, "bad": 3}
    assert shown == {"crawl": "shop", **counts}
