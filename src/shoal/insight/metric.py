"""Defines what a metric is, and how to declare metrics of crawls, workers and hosts."""

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
"""A value of a metric with its labels. None: not known, and left out."""
Kind = Literal["counter", "gauge", "histogram"]

PREFIX = "shoal_"
CRAWL = ("crawl", "schedule")


class Metric(msgspec.Struct, frozen=True):
    """One metric: its name, kind, help text and labels, and the function that reads its values."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[Survey], Iterable[Reading]]


def of_all(
    name: str, kind: Kind, text: str, read: Callable[[Survey], float], **labels: str
) -> Metric:
    """A metric with one value for the whole frontier. `labels` have fixed values."""
    return Metric(PREFIX + name, kind, text, tuple(labels), lambda survey: [(labels, read(survey))])


def of_crawls(name: str, kind: Kind, text: str, read: Callable[[Sample], float | None]) -> Metric:
    """A metric with one value for each crawl."""

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
    """A metric with several values for each crawl, one for each value of a label."""

    def readings(survey: Survey) -> Iterator[Reading]:
        for sample in survey.samples:
            for named, value in read(sample):
                yield _crawl_labels(sample) | {label: named}, value

    return Metric(PREFIX + name, kind, text, (*CRAWL, label), readings)


def of_workers(name: str, kind: Kind, text: str, read: Callable[[Pulse], Value]) -> Metric:
    """A metric with one value for each worker of a crawl."""
    return by("worker", name, kind, text, lambda s: ((w.worker, read(w)) for w in s.workers))


def of_workers_by(
    label: str,
    name: str,
    kind: Kind,
    text: str,
    read: Callable[[Pulse], Iterable[tuple[str, float]]],
) -> Metric:
    """A metric with several numbers for each worker, one for each value of a label."""

    def readings(survey: Survey) -> Iterator[Reading]:
        for sample in survey.samples:
            for worker in sample.workers:
                whose = _crawl_labels(sample) | {"worker": worker.worker}
                for named, number in read(worker):
                    yield whose | {label: named}, number

    return Metric(PREFIX + name, kind, text, (*CRAWL, "worker", label), readings)


def of_hosts(name: str, kind: Kind, text: str, read: Callable[[Host], float]) -> Metric:
    """A metric with one value for each of a crawl's busiest hosts."""
    full_text = f"{text} Of the ten hosts with the most work left, and only if asked for."
    return by("host", name, kind, full_text, lambda s: ((h.host, read(h)) for h in s.busiest))


def _crawl_labels(sample: Sample) -> Labels:
    return {"crawl": sample.crawl, "schedule": sample.schedule or ""}
