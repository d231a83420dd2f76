"""What became of one URL, from discovery to stored row."""

from __future__ import annotations

import msgspec

from shoal.admission import Admission, NotAdmitted
from shoal.frontier.port import Frontier, Record
from shoal.results.port import PageLog, RejectedItem, Results, StoredItem
from shoal.task import Task
from shoal.urls import Normaliser

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
    fingerprint = admission.fingerprint(url)
    record = await frontier.find(crawl, fingerprint)
    return Explanation(
        url=url,
        normal=Normaliser(rules.drop_params).identify(url).normal,
        fingerprint=fingerprint.hex(),
        verdict=_verdict(record) if record else _never_added(admission, url),
        record=record,
        found_on=await _ancestors(frontier, crawl, record),
        tries=await results.pages_of(crawl, fingerprint),
        items=await results.items_of(crawl, fingerprint),
        rejected=await results.rejected_of(crawl, fingerprint),
    )


def _verdict(record: Record) -> str:
    because = f": {record.reason}" if record.reason else ""
    holder = f" by {record.worker}" if record.worker else ""
    return f"{record.state}{holder}{because}"


def _never_added(admission: Admission, url: str) -> str:
    try:
        admission.admit(Task(url=url))
    except NotAdmitted as error:
        return f"never added: {error}"
    return "never added: no page linked to it, and it was not a seed"


async def _ancestors(frontier: Frontier, crawl: str, record: Record | None) -> list[str]:
    found: list[str] = []
    while record and record.task.parent and len(found) < MAX_ANCESTORS:
        record = await frontier.find(crawl, bytes.fromhex(record.task.parent))
        if record:
            found.append(record.task.url)
    return found
