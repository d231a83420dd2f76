"""What became of one URL, from discovery to stored row."""

from __future__ import annotations

import msgspec

from shoal.admission import Admission, NotAdmitted
from shoal.frontier.port import Frontier, Record
from shoal.results.port import PageLog, RejectedItem, Results, StoredItem
from shoal.task import Task
from shoal.urls import FINGERPRINT_BYTES, Normaliser

MAX_ANCESTORS = 100


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
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []


async def explain(frontier: Frontier, results: Results, crawl: str, url: str) -> Explanation:
    """Ask the frontier and the results what they know of a URL. Raises BadUrl, UnknownCrawl."""
    rules = (await frontier.stats(crawl)).rules
    admission = Admission(rules)
    entry = admission.admitted_as(Task(url=url))
    fingerprint = entry.fingerprint
    record = await frontier.find(crawl, entry)
    tries = await results.pages_of(crawl, fingerprint)
    return Explanation(
        url=url,
        normal=Normaliser(rules.drop_params).identify(url).normal,
        fingerprint=fingerprint.hex(),
        verdict=_verdict(record, tries) if record else _never_added(admission, url),
        record=record,
        found_on=await _ancestors(results, crawl, _parent(record, tries)),
        tries=tries,
        items=await results.items_of(crawl, fingerprint),
        rejected=await results.rejected_of(crawl, fingerprint),
    )


def _verdict(record: Record, tries: list[PageLog]) -> str:
    reason = record.reason or (tries[-1].error if tries else "")
    because = f": {reason}" if reason else ""
    holder = f" by {record.worker}" if record.worker else ""
    return f"{record.state}{holder}{because}"


def _never_added(admission: Admission, url: str) -> str:
    try:
        admission.admit(Task(url=url))
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


def _fingerprint(parent: str | None) -> bytes | None:
    """A parent's name as a fingerprint. In a task that somebody else wrote it may be anything."""
    try:
        fingerprint = bytes.fromhex(parent or "")
    except ValueError:
        return None
    return fingerprint if len(fingerprint) == FINGERPRINT_BYTES else None
