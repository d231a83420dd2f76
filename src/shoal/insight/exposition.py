"""Metrics as text, by prometheus_client."""

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
    """Look at all crawls, and answer a scrape: see `render_metrics`. `hosts`: tell of the busiest
    ones of each crawl, too. `wanted` knows how many workers they should have. Many workers make
    much text, so that is written in a thread."""
    seen = await survey(frontier, now, busiest=hosts)
    if wanted is not None:
        seen = await wanted.with_workers(seen)
    return await asyncio.to_thread(render_metrics, seen, accept)


def render_metrics(survey: Survey, accept: str = "") -> tuple[bytes, str]:
    """The answer to a scrape, and its content type. `accept` is the request's header: OpenMetrics
    is for those who ask for it. Raises MissingExtra."""
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
    """What a registry asks."""

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
    """As Prometheus has it, a class counts all that took no longer than its bound."""
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    counts = accumulate(histogram.counts[: len(bounds)])
    for bound, count in zip(bounds, counts, strict=False):  # A worker says how many it has.
        made.add_sample(f"{made.name}_bucket", labels | {"le": bound}, count)
    made.add_sample(f"{made.name}_count", labels, histogram.count)
    made.add_sample(f"{made.name}_sum", labels, histogram.total_s)
