"""Crawling again: pages that have not changed are not transferred again, and what is gone is
marked.

The rule `previous` names an earlier crawl in the same results. A page that had no links then is
requested with what the server said about its version (ETag, Last-Modified). If the server answers
304, the items that the page had are saved again, as of now. A page that had links is read in full:
its links are the way through the site. When such a crawl has seen everything, the items that only
the earlier one has are marked as gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.files import FILE
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.errors import ConfigError, StorageFailed
from shoal.frontier.port import Queries
from shoal.frontier.values import CrawlState, Lease, Stats
from shoal.results.port import KnownPage, PageLog, Results
from shoal.runtime.patience import patiently
from shoal.spider.catalogue import KEY as CATALOGUE

NOT_MODIFIED = 304
MOST_DEAD = 1_000
"""The most dead tasks that are checked for being files. With more, much was not seen."""
MAX_VALIDATOR = 500
"""The most characters of an ETag or a date that are kept."""

_OWN_WAYS = frozenset(
    {"if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"}
)
"""Headers of conditional requests: a spider that sends one of them makes its own conditions."""

log = logging.getLogger("shoal")


class Earlier:
    """What an earlier crawl knows of pages.

    A worker visits many pages at once. The visit whose turn it is to ask the store asks for all of
    them.
    """

    def __init__(self, results: Results, crawl: str) -> None:
        self._results = results
        self._crawl = crawl
        self._turn = asyncio.Lock()
        self._wanted: set[bytes] = set()
        self._found: dict[bytes, KnownPage | None] = {}

    async def page(self, lease: Lease) -> KnownPage | None:
        """Return the page, if it may be requested on the condition that it has changed."""
        if not is_plain(lease.task):
            return None
        self._wanted.add(lease.fingerprint)
        try:
            async with self._turn:
                if lease.fingerprint not in self._found:
                    await self._look_up({lease.fingerprint, *self._wanted})
                known = self._found.get(lease.fingerprint)
        finally:
            self._wanted.discard(lease.fingerprint)
            self._found.pop(lease.fingerprint, None)
        return known if known is not None and may_ask(known) else None

    async def _look_up(self, fingerprints: set[bytes]) -> None:
        ask = partial(self._known, list(fingerprints))
        try:
            known = await patiently("results store", ask)
        except StorageFailed:  # Saving the pages will meet the same error and report it.
            known = {}
        # Some visits may have been given up meanwhile.
        self._found |= {
            fingerprint: known.get(fingerprint)
            for fingerprint in fingerprints
            if fingerprint in self._wanted
        }

    async def _known(self, fingerprints: Sequence[bytes]) -> dict[bytes, KnownPage]:
        return await self._results.known_pages(self._crawl, fingerprints)


def earlier_for(rules: Rules, results: Results | None) -> Earlier | None:
    """Return the earlier crawl that the rules name. Raises ConfigError if the results cannot be
    read."""
    if not rules.previous or results is None:
        return None
    _require_readable(results)
    return Earlier(results, rules.previous)


async def check_previous(results: Results, crawl: str, rules: Rules) -> None:
    """Check that the earlier crawl named by the rules exists. Raises ConfigError if it does not, or
    if the results cannot be read."""
    if not rules.previous:
        return
    if rules.previous == crawl:
        raise ConfigError(f"previous: '{crawl}' is this crawl itself; name an earlier one")
    _require_readable(results)
    if await results.note_of(rules.previous) is None:
        raise ConfigError(f"previous: no results of a crawl '{rules.previous}' here")


# What may be asked, and how


def is_plain(task: Task) -> bool:
    """Whether a task wants a page only for what its handler makes of it. A page of a catalogue is
    also needed to find how the catalogue goes on."""
    if task.method != "GET" or task.body is not None or CATALOGUE in task.meta:
        return False
    return not any(name.lower() in _OWN_WAYS for name in task.headers)


def may_ask(known: KnownPage) -> bool:
    """Whether everything that a page gave can be had without reading it again."""
    is_complete = len(known.items) == known.read and not known.rejected
    return known.links == 0 and is_complete and bool(_conditions(known))


def conditional(task: Task, known: KnownPage) -> Task:
    """Return a request for a page on the condition that it has changed. The task itself is not
    modified."""
    return replace(task, headers=task.headers | _conditions(known))


def validator(text: str | None) -> str:
    """Return an ETag or a date as it can be kept and sent. Empty where it cannot be."""
    if text is None or len(text) > MAX_VALIDATOR:
        return ""
    return text if text.isascii() and text.isprintable() else ""


def note_version(page: PageLog, headers: Mapping[str, str]) -> None:
    """Record what the server says about this version of the page."""
    page.etag = validator(headers.get("ETag"))
    page.last_modified = validator(headers.get("Last-Modified"))


def seen_again(items: Sequence[StoredItem], at: float) -> list[StoredItem]:
    """Return the items of a page that has not changed, as of now."""
    return [replace(item, scraped_at=at) for item in items]


def carry_on(known: KnownPage, page: PageLog) -> None:
    """Carry what is known of a page on to the next crawl, except for what the server says anew."""
    page.etag = page.etag or known.etag
    page.last_modified = page.last_modified or known.last_modified
    page.digest = known.digest
    page.simhash = known.simhash


def _conditions(known: KnownPage) -> dict[str, str]:
    asked = {
        "If-None-Match": validator(known.etag),
        "If-Modified-Since": validator(known.last_modified),
    }
    return {name: value for name, value in asked.items() if value}


def _require_readable(results: Results) -> None:
    if not results.readable:
        raise ConfigError(
            "previous: these results only pass through, so nothing is known of an earlier crawl;"
            " give --results of the store itself"
        )


# What is gone


def why_not_full(stats: Stats) -> str | None:
    """Return why a crawl may have missed something. None if it has seen everything."""
    if stats.state is not CrawlState.FINISHED:
        return f"the crawl is {stats.state}"
    if not stats.done:
        return "no page was read"
    if stats.dead:
        return f"{stats.dead:,} tasks are dead" if stats.dead > 1 else "1 task is dead"
    if stats.remaining:
        return f"{stats.remaining:,} URLs were left out (max_pages)"
    if stats.bloom:
        return "known URLs are in a Bloom filter, which may have hidden new ones"
    return None


async def _are_files(frontier: Queries, crawl: str) -> bool:
    """Whether all dead tasks of a crawl are files of items."""
    dead = await patiently("frontier", lambda: frontier.dead(crawl, MOST_DEAD + 1))
    return len(dead) <= MOST_DEAD and all(record.task.job_type == FILE for record in dead)


async def mark_gone_items(results: Results, frontier: Queries, stats: Stats) -> int:
    """Mark as gone the items that an earlier crawl had and this one did not find. Returns their
    number.

    Only after a full crawl: a page that could not be read may lead to anything. A file leads to
    nothing. Safe to do twice, and by several workers at once.
    """
    previous = stats.rules.previous
    if not previous:
        return 0
    if 0 < stats.dead <= MOST_DEAD and await _are_files(frontier, stats.crawl):
        stats = replace(stats, dead=0)
    if (reason := why_not_full(stats)) is not None:
        if stats.state is CrawlState.FINISHED:
            log.warning("%s: items that were not seen are not marked gone", reason)
        return 0
    at = stats.finished_at or time.time()
    return await patiently("results store", lambda: results.mark_gone(stats.crawl, previous, at))
