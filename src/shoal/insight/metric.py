"""Metrics: what one is, and how those of crawls, workers and hosts are read off a look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from shoal.core.histograms import Histogram
from shoal.frontier.values import Host, Pulse
from shoal.insight.sample import Sample, Survey

Labels = dict[str, str]
Value = float | Histogram
Reading = tuple[Labels, Value | None]
"""A value and what tells it from others of the metric. None: it is not known, so not told."""
Kind = Literal["counter", "gauge", "histogram"]

PREFIX = "shoal_"
CRAWL = ("crawl", "schedule")


class Metric(msgspec.Struct, frozen=True):
    """One metric: its name, its kind, what it is, and where it is read."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[Survey], Iterable[Reading]]


def of_all(
    name: str, kind: Kind, text: str, read: Callable[[Survey], float], **labels: str
) -> Metric:
    """A metric that there is once, whatever crawls there are. `labels` are always the same."""
    return Metric(PREFIX + name, kind, text, tuple(labels), lambda survey: [(labels, read(survey))])


def of_crawls(name: str, kind: Kind, text: str, read: Callable[[Sample], float | None]) -> Metric:
    """A metric that each crawl has."""

    def readings(survey: Survey) -> Iterator[Reading]:
        for sample in survey.samples:
            yield _crawl_labels(sample), read(sample)

    return Metric(PREFIX + name, kind, text, CRAWL, readings)


def by(
    label: str,
    name: str,
    kind: Kind,
    text: str,
    read: Callable[[Sample], Iterable[tuple[str, Value]]],
) -> Metric:
    """A metric of crawls that has a value for each value of a label."""

    def readings(survey: Survey) -> Iterator[Reading]:
        for sample in survey.samples:
            for named, value in read(sample):
                yield _crawl_labels(sample) | {label: named}, value

    return Metric(PREFIX + name, kind, text, (*CRAWL, label), readings)


def of_workers(name: str, kind: Kind, text: str, read: Callable[[Pulse], Value]) -> Metric:
    """A metric that each worker of a crawl has."""
    return by("worker", name, kind, text, lambda s: ((w.worker, read(w)) for w in s.workers))


def of_workers_by(
    label: str,
    name: str,
    kind: Kind,
    text: str,
    read: Callable[[Pulse], Iterable[tuple[str, float]]],
) -> Metric:
    """A metric of workers that has a number for each value of a label."""

    def readings(survey: Survey) -> Iterator[Reading]:
        for sample in survey.samples:
            for worker in sample.workers:
                whose = _crawl_labels(sample) | {"worker": worker.worker}
                for named, number in read(worker):
                    yield whose | {label: named}, number

    return Metric(PREFIX + name, kind, text, (*CRAWL, "worker", label), readings)


def of_hosts(name: str, kind: Kind, text: str, read: Callable[[Host], float]) -> Metric:
    """A metric of the busiest hosts of a crawl."""
    said = f"{text} Of the ten hosts with the most work left, and only if asked for."
    return by("host", name, kind, said, lambda s: ((h.host, read(h)) for h in s.busiest))


def _crawl_labels(sample: Sample) -> Labels:
    return {"crawl": sample.crawl, "schedule": sample.schedule or ""}
