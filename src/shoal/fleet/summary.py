"""The summary of a crawl for what ran it: a command, a program, the hook `closed`."""

from __future__ import annotations

import msgspec

from shoal.core.causes import Cause
from shoal.frontier.causes import causes_of_death
from shoal.frontier.patient import patient
from shoal.frontier.values import CrawlState, Stats
from shoal.results.port import Results
from shoal.results.rejections import causes_of_rejection
from shoal.runtime.patience import patiently
from shoal.worker.assignment import Stores


class Summary(msgspec.Struct, kw_only=True):
    """The state of a crawl when `crawl` returns."""

    stats: Stats
    items: dict[str, int]
    """Items stored, per kind."""
    gone: int = 0
    """Items of the previous crawl that no longer exist."""
    seconds: float
    """How long this run took."""
    causes: list[Cause] = []
    """What tasks died of, most frequent first."""
    rejections: list[Cause] = []
    """Why items were rejected."""
    finished_before: float | None = None
    """When the crawl had finished before, if this run found nothing to do."""

    @property
    def finished(self) -> bool:
        """Whether the whole crawl is finished."""
        return self.stats.state is CrawlState.FINISHED

    @property
    def exit_code(self) -> int:
        """0 finished, 3 finished with dead tasks, 1 stopped before its end."""
        if not self.finished:
            return 1
        return 3 if self.stats.dead else 0


async def summary_of(
    stores: Stores[Results], stats: Stats, seconds: float, gone: int = 0
) -> Summary:
    """Make the summary of a crawl. Waits for a store that is unavailable."""
    return Summary(
        stats=stats,
        gone=gone,
        items=await _counted(stores.results, stats.crawl),
        causes=await causes_of_death(patient(stores.frontier), stats),
        rejections=await _rejections(stores.results, stats),
        seconds=seconds,
    )


async def _counted(results: Results, name: str) -> dict[str, int]:
    if not results.readable:
        return {}
    return await patiently("results store", lambda: results.count(name))


async def _rejections(results: Results, stats: Stats) -> list[Cause]:
    if not stats.rejected:
        return []
    return await patiently("results store", lambda: causes_of_rejection(results, stats.crawl))
