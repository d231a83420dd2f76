"""Writes metrics as text for Prometheus, with prometheus_client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from shoal.core import plaintext
from shoal.core.histograms import BOUNDS_S, Histogram
from shoal.errors import MissingExtra
from shoal.frontier.port import QueriesAndNotes
from shoal.insight.advise.wanted import WantedWorkers
from shoal.insight.metrics import Family, families
from shoal.insight.sample import Survey, survey

if TYPE_CHECKING:
    from prometheus_client import Metric


async def scrape(
    frontier: QueriesAndNotes,
    now: float,
    *,
    accept: str = "",
    hosts: bool = False,
    wanted: WantedWorkers | None = None,
) -> tuple[bytes, str]:
    """Look at all crawls, and answer a scrape: see `render_metrics`.

    `hosts` adds the busiest hosts of each crawl, `wanted` the number of workers that each should
    have. The text is written in a thread, because many workers make it long.
    """
    seen = await survey(frontier, now, busiest=hosts)
    if wanted is not None:
        seen = await wanted.with_workers(seen)
    return await asyncio.to_thread(render_metrics, seen, accept)


def render_metrics(survey: Survey, accept: str = "") -> tuple[bytes, str]:
    """The answer to a scrape, and its content type. `accept` is the request's Accept header, which
    may ask for OpenMetrics. Raises MissingExtra."""
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder
    except ImportError:
        raise MissingExtra("/metrics", "metrics") from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(families(survey)))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collector:
    """Gives finished metrics to a registry of prometheus_client."""

    def __init__(self, found: Iterable[Family]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        from prometheus_client import Metric

        for family in self._found:
            metric = family.metric
            made = Metric(metric.name.removesuffix("_total"), metric.help, metric.kind)
            for labels, value in family.values:
                shown = {label: plaintext.one_line(text) for label, text in labels.items()}
                if isinstance(value, Histogram):
                    _add_histogram(made, shown, value)
                else:
                    made.add_sample(metric.name, shown, value)
            if made.samples:
                yield made


def _add_histogram(made: Metric, labels: dict[str, str], histogram: Histogram) -> None:
    """Add the samples of a histogram. Prometheus's buckets are cumulative, ours are not."""
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    counts = accumulate(histogram.counts[: len(bounds)])
    for bound, count in zip(bounds, counts, strict=False):  # The worker sets the number of counts.
        made.add_sample(f"{made.name}_bucket", labels | {"le": bound}, count)
    made.add_sample(f"{made.name}_count", labels, histogram.count)
    made.add_sample(f"{made.name}_sum", labels, histogram.total_s)
