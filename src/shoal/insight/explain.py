"""What became of one URL, from discovery to stored row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from shoal.admission import Admission, NotAdmitted
from shoal.frontier.port import Frontier
from shoal.frontier.values import Record
from shoal.insight.duplicates import url_of
from shoal.results.port import PageLog, RejectedItem, Results, StoredItem
from shoal.task import Task
from shoal.urls import FINGERPRINT_BYTES, Normaliser

MAX_ANCESTORS = 100
MAX_HISTORIES = 100


class Reading(msgspec.Struct, kw_only=True):
    """What a page said of an item at some time."""

    scraped_at: float
    url: str
    changes: dict[str, tuple[Any, Any]] = {}
    """The fields that were different before: what they were, and what they became."""


class Near(msgspec.Struct, kw_only=True):
    """A page that another one is nearly the same as."""

    url: str
    distance: int
    """The bits in which their simhashes differ."""


class Explanation(msgspec.Struct, kw_only=True):
    """All that is known of a URL in a crawl."""

    url: str
    normal: str
    """The spelling under which all spellings of this address are one."""
    fingerprint: str
    verdict: str
    """One sentence: where it stands and why."""
    record: Record | None = None
    """The frontier's view. None if it never got there."""
    found_on: list[str] = []
    """The pages that led here: the nearest first, a seed last."""
    tries: list[PageLog] = []
    near: Near | None = None
    items: list[StoredItem] = []
    histories: list[list[Reading]] = []
    """What was kept of each item's readings, oldest first; of the first hundred items."""
    rejected: list[RejectedItem] = []


async def explain(frontier: Frontier, results: Results, crawl: str, url: str) -> Explanation:
    """Ask the frontier and the results what they know of a URL. Raises BadUrl, UnknownCrawl."""
    rules = (await frontier.stats(crawl)).rules
    admission = Admission(rules)
    entry = admission.admitted_as(Task(url=url))
    fingerprint = entry.fingerprint
    record = await frontier.find(crawl, entry)
    tries = await results.pages_of(crawl, fingerprint)
    items = await results.items_of(crawl, fingerprint)
    return Explanation(
        url=url,
        normal=Normaliser(rules.drop_params).identify(url).normal,
        fingerprint=fingerprint.hex(),
        verdict=_verdict(record, tries) if record else _never_added(admission, url),
        record=record,
        found_on=await _ancestors(results, crawl, _parent(record, tries)),
        tries=tries,
        near=await _near(results, crawl, fingerprint),
        items=items,
        histories=[await _history(results, crawl, item) for item in items[:MAX_HISTORIES]],
        rejected=await results.rejected_of(crawl, fingerprint),
    )


def _verdict(record: Record, tries: list[PageLog]) -> str:
    reason = record.reason or (tries[-1].error if tries else "")
    because = f": {reason}" if reason else ""
    holder = f" by {record.worker}" if record.worker else ""
    return f"{record.state}{holder}{because}"


def _never_added(admission: Admission, url: str) -> str:
    try:
        admission.admit(Task(url=url), found_on="")
    except NotAdmitted as error:
        return f"never added: {error}"
    return "never added: no page linked to it, and it was not a seed"


def _parent(record: Record | None, tries: list[PageLog]) -> str | None:
    """Who led here. The frontier may have forgotten it of a task that has ended; the log has it."""
    known = record.task.parent if record else None
    return known or (tries[-1].parent if tries else None)


async def _ancestors(results: Results, crawl: str, parent: str | None) -> list[str]:
    """The pages on the way here. All of them were fetched, so all are in the page log."""
    found: list[str] = []
    while len(found) < MAX_ANCESTORS and (fingerprint := _fingerprint(parent)):
        pages = await results.pages_of(crawl, fingerprint)
        if not pages:
            break
        found.append(pages[-1].url)
        parent = pages[-1].parent
    return found


async def _near(results: Results, crawl: str, fingerprint: bytes) -> Near | None:
    near = await results.near_of(crawl, fingerprint)
    if near is None:
        return None
    return Near(url=await url_of(results, crawl, near.like), distance=near.distance)


async def _history(results: Results, crawl: str, item: StoredItem) -> list[Reading]:
    kept = await results.history(crawl, item.kind, item.key)
    readings = [Reading(scraped_at=one.scraped_at, url=one.url) for one in kept]
    contents = [msgspec.json.decode(one.data, type=dict[str, Any]) for one in kept]
    for (before, after), reading in zip(pairwise(contents), readings[1:], strict=True):
        reading.changes = _changes(before, after)
    return readings


def _changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs. A field that is not there is None."""
    pairs = {name: (before.get(name), after.get(name)) for name in before | after}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _fingerprint(parent: str | None) -> bytes | None:
    """A parent's name as a fingerprint. In a task that somebody else wrote it may be anything."""
    try:
        fingerprint = bytes.fromhex(parent or "")
    except ValueError:
        return None
    return fingerprint if len(fingerprint) == FINGERPRINT_BYTES else None
