"""Explains what became of one URL, from its discovery to the stored item."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from shoal.config import Rules
from shoal.core.files import StoredFile, known_as
from shoal.core.identities import NO_SESSION
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.task import Task
from shoal.core.urls import FINGERPRINT_BYTES, Normaliser
from shoal.errors import ConfigError
from shoal.frontier.admission import Admission, NotAdmitted
from shoal.frontier.port import HasExits, Queries, QueriesAndNotes
from shoal.frontier.values import Entry, Record, Stats, TaskState
from shoal.insight.duplicates import url_of
from shoal.insight.sessions import wait_of
from shoal.insight.traps import why_kept_out
from shoal.results.port import PageLog, Results
from shoal.sessions.telling import no_such_session

MAX_ANCESTORS = 100
MAX_HISTORIES = 100
MAX_TASKS = 20
"""How many tasks at one address to explain. An API may have one address for everything."""


_ENDS = (TaskState.DONE, TaskState.DROPPED)


class ItemReading(msgspec.Struct, kw_only=True):
    """An item as a page had it at some time."""

    scraped_at: float
    url: str
    changes: dict[str, tuple[Any, Any]] = {}
    """The fields that differ from the reading before: their old and new values."""


class Near(msgspec.Struct, kw_only=True):
    """An earlier page that a page is nearly the same as."""

    url: str
    distance: int
    """The number of bits in which their simhashes differ."""


class Explanation(msgspec.Struct, kw_only=True):
    """Everything that is known about a task in a crawl."""

    url: str
    normal: str
    """The normalised URL, which all spellings of this address share."""
    fingerprint: str
    verdict: str
    """One sentence: the state of the task and the reason."""
    record: Record | None = None
    """What the frontier knows. None if it never had the task, or has forgotten it."""
    found_on: list[str] = []
    """The pages that led here: the nearest first, a seed last."""
    tries: list[PageLog] = []
    near: Near | None = None
    items: list[StoredItem] = []
    histories: list[list[ItemReading]] = []
    """The stored readings of the first hundred items, the oldest reading first."""
    rejected: list[RejectedItem] = []
    file: StoredFile | None = None
    """The stored file, if the URL is that of a file of items."""
    others: list[Explanation] = []
    """Other tasks at this address: with another method or body, or copies (`dont_filter`)."""


async def explain(
    frontier: QueriesAndNotes, results: Results, crawl: str, url: str, session: str | None = None
) -> Explanation:
    """Collect what the frontier and the results know about a URL.

    The plain GET comes first, with `session`, or if that is None, with the crawl's. Its fingerprint
    follows from the URL. There is no index of other tasks at the same address, as every crawl would
    pay for it. They are found by searching all tasks of the host, and the page log for tasks that
    the frontier has forgotten. Raises BadUrl, ConfigError, UnknownCrawl.
    """
    stats = await frontier.stats(crawl)
    rules = stats.rules
    admission = Admission(rules)
    _check_session(session, rules)
    plain = admission.admitted_as(Task(url=url, session=session))
    normal = Normaliser(rules.drop_params).identify(url).normal
    is_same = admission.same_address(url)
    queued = await frontier.find_others(crawl, plain.task.site, is_same, MAX_TASKS)
    records = {record.fingerprint: record for record in queued}
    tried = await results.tasks_at(crawl, admission.spellings(url), MAX_TASKS)
    if plain.fingerprint not in records:
        record = await frontier.find(crawl, plain)
        if record is not None:
            records = {plain.fingerprint: record} | records
    order = _in_order(plain.fingerprint, [*records, *tried])
    explanations = [
        await _explained(
            frontier,
            results,
            crawl,
            Entry(fingerprint, plain.task),
            normal,
            record=records.get(fingerprint),
        )
        for fingerprint in order
    ]
    is_asked_for = session is not None and plain.fingerprint not in order
    if not explanations or is_asked_for:
        never = await _never_added(frontier, admission, url, session, stats)
        key = plain.fingerprint.hex()
        explanations.insert(0, Explanation(url=url, normal=normal, fingerprint=key, verdict=never))
    for each in explanations:
        await _add_wait(frontier, each)
    explanations[0].others = explanations[1:]
    return explanations[0]


def _check_session(session: str | None, rules: Rules) -> None:
    """Raises ConfigError for a session that no task of the crawl can have."""
    group = (session or NO_SESSION).partition("#")[0]
    if group != NO_SESSION and group not in rules.sessions:
        raise ConfigError(no_such_session(group, rules.sessions))


async def _add_wait(frontier: HasExits, explanation: Explanation) -> None:
    """Add to the verdict if the task waits for an account."""
    record = explanation.record
    if record is None or record.state is not TaskState.WAITING:
        return
    if waits := await wait_of(frontier, record.task, time.time()):
        explanation.verdict += f"{';' if record.reason else ':'} {waits}"


def _in_order(plain: bytes, found: Sequence[bytes]) -> list[bytes]:
    """The fingerprints found, each once, that of the plain GET first."""
    first = [plain] if plain in found else []
    return list(dict.fromkeys([*first, *found]))[:MAX_TASKS]


async def _explained(
    frontier: Queries,
    results: Results,
    crawl: str,
    entry: Entry,
    normal: str,
    record: Record | None,
) -> Explanation:
    fingerprint = entry.fingerprint
    tries = await results.pages_of(crawl, fingerprint)
    if record is None and not (tries and tries[-1].verdict in _ENDS):
        record = await frontier.find(crawl, entry)
    items = await results.items_of(crawl, fingerprint)
    return Explanation(
        url=entry.task.url,
        normal=normal,
        fingerprint=fingerprint.hex(),
        verdict=_verdict(record, tries),
        record=record,
        found_on=await _ancestors(results, crawl, _parent(record, tries)),
        tries=tries,
        near=await _near(results, crawl, fingerprint),
        items=items,
        histories=[await _history(results, crawl, item) for item in items[:MAX_HISTORIES]],
        rejected=await results.rejected_of(crawl, fingerprint),
        file=await _file(results, crawl, fingerprint, record),
    )


async def _file(
    results: Results, crawl: str, fingerprint: bytes, record: Record | None
) -> StoredFile | None:
    """The stored file of a task. A redirect, or a second try with a higher size limit, is stored
    under the fingerprint of the first task for the file."""
    known = known_as(record.task, fingerprint) if record is not None else fingerprint
    return (await results.files_of(crawl, [known])).get(known)


def _verdict(record: Record | None, tries: list[PageLog]) -> str:
    """The state in the frontier, or if that has forgotten the task, the outcome of the last try."""
    state: str = record.state if record else tries[-1].verdict if tries else "forgotten"
    reason = (record.reason if record else "") or (tries[-1].error if tries else "")
    because = f": {reason}" if reason else ""
    holder = f" by {record.worker}" if record and record.worker else ""
    return f"{state}{holder}{because}"


async def _never_added(
    frontier: Queries, admission: Admission, url: str, session: str | None, stats: Stats
) -> str:
    try:
        link = admission.admit(Task(url=url, session=session), found_on="")
    except NotAdmitted as error:
        return f"never added: {error}"
    if reason := await why_kept_out(frontier, stats.crawl, stats.rules, link):
        return f"never added: {reason}; further links to such pages were not followed"
    max_depth, most = stats.rules.max_depth, stats.rules.max_links_per_page
    if max_depth is not None:
        return (
            f"never added: it was not a seed, and no page above depth {max_depth} linked to it"
            " (links deeper than that are not kept, so a page at that depth may have)"
        )
    verdict = "never added: no handler or rule followed a link to it, and it was not a seed"
    return verdict + (f" (unless a page has more than {most:,} links)" if stats.filtered else "")


def _parent(record: Record | None, tries: list[PageLog]) -> str | None:
    """The fingerprint of the page that led here. The frontier may have forgotten it for a task that
    has ended; the page log still has it."""
    known = record.task.parent if record else None
    return known or (tries[-1].parent if tries else None)


async def _ancestors(results: Results, crawl: str, parent: str | None) -> list[str]:
    """The URLs of the pages that led here. All were fetched, so the page log has them."""
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


async def _history(results: Results, crawl: str, item: StoredItem) -> list[ItemReading]:
    kept = await results.history(crawl, item.kind, item.key)
    readings = [ItemReading(scraped_at=one.scraped_at, url=one.url) for one in kept]
    contents = [msgspec.json.decode(one.data, type=dict[str, Any]) for one in kept]
    for (before, after), reading in zip(pairwise(contents), readings[1:], strict=True):
        reading.changes = _changes(before, after)
    return readings


def _changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, with both values. A missing field is None."""
    pairs = {name: (before.get(name), after.get(name)) for name in before | after}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _fingerprint(parent: str | None) -> bytes | None:
    """A parent as a fingerprint. None if it is not one: other programs can write tasks, and any
    text in them."""
    try:
        fingerprint = bytes.fromhex(parent or "")
    except ValueError:
        return None
    return fingerprint if len(fingerprint) == FINGERPRINT_BYTES else None
