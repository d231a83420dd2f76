"""Made-up samples and surveys of crawls."""

from __future__ import annotations

from typing import Any

from shoal.config import Rules
from shoal.frontier.board import Leader
from shoal.frontier.values import CrawlState, Host, Pulse, Stats
from shoal.insight.sample import Sample, Survey

BEGIN = 1_800_000_000.0
"""The time at which all crawls begin: a full hour."""


def sample(minute: float = 0, *, crawl: str = "shop", **said: Any) -> Sample:
    """A crawl `minute` minutes after its beginning. `said` are fields of the sample or its
    stats."""
    own = {name: said.pop(name) for name in list(said) if name in Sample.__struct_fields__}
    known = {"state": CrawlState.RUNNING, "rules": Rules(), "created_at": BEGIN, **said}
    return Sample(at=BEGIN + 60 * minute, stats=Stats(crawl=crawl, **known), **own)


def worker(name: str = "host-1:4711", **said: Any) -> Pulse:
    """A worker that is alive."""
    return Pulse(worker=name, host=name.partition(":")[0], pid=1, version="0", **said)


def host(name: str, **said: Any) -> Host:
    """A host of a crawl."""
    return Host(host=name, **said)


def survey_of(*samples: Sample, leader: str | None = "host-1:1") -> Survey:
    """A survey of these crawls."""
    led_by = Leader(leader, 1) if leader else None
    return Survey(at=BEGIN, leader=led_by, samples=list(samples))
