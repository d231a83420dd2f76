"""Decides which other pages of a catalogue follow from one of them. Pure.

If a catalogue says how many pages it has, its first page issues all of them at once. Any later page
that names more issues the rest.

Otherwise the catalogue is probed. Page 2, 4, 8, ... is tried until one is empty; then the page
half-way between the last full page and the first empty one, until the two are neighbours. A full
probe issues all pages below it. What is known travels with the probe. A page that is missing among
full ones must not hide the pages behind it, so the page after an empty one is tried too: two empty
ones in a row are the end. When everything else is done, the first page past the end is tried once
more: if the catalogue has grown by then, its new pages are read one after the other.
"""

from __future__ import annotations

import logging

import msgspec
from msgspec.structs import replace

from shoal.core.policy import GONE_STATUSES
from shoal.core.task import Task
from shoal.frontier.values import Outcome, Verdict
from shoal.spider.catalogue import KEY, Catalogue, Note, catalogues_of
from shoal.spider.page import Page
from shoal.spider.spider import Spider

log = logging.getLogger("shoal")


class NextPages(msgspec.Struct, frozen=True):
    """The pages of a catalogue that follow from one of them."""

    notes: list[Note] = []
    """One note for each page."""
    warning: str = ""
    """A warning to the user that pages may be left unread."""


class NextTasks(msgspec.Struct, frozen=True):
    """The tasks for the pages of a catalogue that follow from one of them."""

    tasks: list[Task] = []
    warning: str = ""


def next_pages(catalogue: Catalogue, note: Note, page: Page | None) -> NextPages:
    """Return what follows from a page, or from one that is not there (None)."""
    if note.issued is None:
        return NextPages()
    if catalogue.items is None:
        return _counted(catalogue, note, note.issued, page)
    is_full = page is not None and catalogue.is_full(page)
    if note.page == catalogue.first and not is_full:
        return NextPages(warning=_says_nothing(catalogue))
    if note.late:
        return _look_further(catalogue, note) if is_full else NextPages()
    return _full(catalogue, note, note.issued) if is_full else _empty(catalogue, note, note.issued)


# Catalogues that say how many pages they have


def _counted(catalogue: Catalogue, note: Note, issued: int, page: Page | None) -> NextPages:
    last = None if page is None else catalogue.last_named(page, note.page)
    if last is None:
        is_first = note.page == catalogue.first
        return NextPages(warning=_says_nothing(catalogue) if is_first else "")
    end = min(last, catalogue.end)
    notes = [replace(note, page=number, issued=end) for number in range(issued + 1, end + 1)]
    too_many = last > end and (notes or note.page == catalogue.first)
    return NextPages(notes, _cut_off(catalogue, f"it says {last:,}") if too_many else "")


# Catalogues that are probed


def _full(catalogue: Catalogue, note: Note, issued: int) -> NextPages:
    """Return what follows from a full probe: everything up to it exists, and the end is behind
    it."""
    below = [
        Note(note.index, number) for number in range(issued + 1, min(note.page, catalogue.end))
    ]
    if note.page >= catalogue.end:
        return NextPages(below, _cut_off(catalogue, "there is no end to it"))
    return NextPages([*below, _next_probe(catalogue, note.index, note.page, note.high)])


def _empty(catalogue: Catalogue, note: Note, issued: int) -> NextPages:
    """Return what follows from an empty probe: the end is before it, unless the next page shows
    that only this one is missing."""
    if note.twin:
        return NextPages()
    notes = [_next_probe(catalogue, note.index, issued, note.page)]
    after = note.page + 1
    if after < (note.high or catalogue.end + 1):
        notes.append(replace(note, page=after, twin=True))
    return NextPages(notes)


def _next_probe(catalogue: Catalogue, index: int, low: int, high: int | None) -> Note:
    """Return the next probe, where `low` is full and `high` is empty or unknown."""
    if high is None:
        count = low - catalogue.first + 1
        return Note(index, min(catalogue.first + 2 * count - 1, catalogue.end), issued=low)
    if high - low > 1:
        return Note(index, (low + high) // 2, issued=low, high=high)
    return Note(index, high, issued=low, late=True)


def _look_further(catalogue: Catalogue, note: Note) -> NextPages:
    if note.page >= catalogue.end:
        return NextPages(warning=_cut_off(catalogue, "it has grown"))
    return NextPages([replace(note, page=note.page + 1, issued=note.page)])


# Warnings


def _says_nothing(catalogue: Catalogue) -> str:
    hint = " (and per_page is not set)" if catalogue.total and not catalogue.per_page else ""
    return (
        f"catalogue {catalogue.url}: {catalogue.query!r} found nothing to count by on its first"
        f" page{hint}; no other page of it is read"
    )


def _has_no_beginning(catalogue: Catalogue, reason: str) -> str:
    return f"catalogue {catalogue.url}: its first page could not be read: {reason}"


def _cut_off(catalogue: Catalogue, why: str) -> str:
    return (
        f"catalogue {catalogue.url}: only its first {catalogue.limit:,} pages are read: {why}"
        " (see its limit)"
    )


class Pager:
    """Finds which pages of a spider's catalogues follow."""

    def __init__(self, spider: Spider) -> None:
        self._catalogues = catalogues_of(spider)

    def after(self, page: Page) -> NextTasks:
        """Return what follows from a page that was read."""
        found = self._look_up(page.task)
        if found is None:
            return NextTasks()
        turned = next_pages(*found, page)
        return _further(found[0], turned, page.task, page.fingerprint)

    def without(self, outcome: Outcome, status: int | None = None) -> NextTasks:
        """Return what follows from a try that gave no page. May change its outcome: the reason,
        and where a redirect leads."""
        task = outcome.lease.task
        found = self._look_up(task)
        if found is None or outcome.verdict in (Verdict.RETRY, Verdict.RETURNED):
            return NextTasks()
        catalogue, note = found
        if outcome.verdict is Verdict.DONE and not _leads_elsewhere(catalogue, note, outcome):
            return NextTasks()
        if note.page == catalogue.first:
            turned = NextPages(warning=_has_no_beginning(catalogue, outcome.reason))
        else:
            turned = next_pages(catalogue, note, None)
        if status in GONE_STATUSES and note.page > catalogue.first:
            outcome.reason = f"past the end of the catalogue ({outcome.reason})"
        return _further(catalogue, turned, task, outcome.lease.fingerprint)

    def _look_up(self, task: Task) -> tuple[Catalogue, Note] | None:
        """Return the catalogue and the page that a task is for, or None. A note alone does not
        prove it: handlers pass their `meta` on to other pages."""
        if not self._catalogues or KEY not in task.meta:
            return None
        try:
            note = msgspec.convert(task.meta[KEY], Note)
            catalogue = self._catalogues[note.index]
        except (msgspec.ValidationError, IndexError):
            return None
        asked_for = task.redirects[0] if task.redirects else task.url
        return (catalogue, note) if asked_for == catalogue.address(note.page) else None


def _further(catalogue: Catalogue, turned: NextPages, task: Task, fingerprint: bytes) -> NextTasks:
    """Return the tasks of further pages. All pages of a catalogue are as deep as its first one, so
    that no limit on depth cuts it off."""
    tasks = [catalogue.task(note) for note in turned.notes]
    for further in tasks:
        further.depth, further.parent = task.depth, fingerprint.hex()
    if turned.warning:
        log.warning("%s", turned.warning)
    return NextTasks(tasks, turned.warning)


def _leads_elsewhere(catalogue: Catalogue, note: Note, outcome: Outcome) -> bool:
    """Whether a redirect leads to another page than the one asked for.

    A page past the end often redirects to the first: that must not count as the page asked for.
    """
    if note.page == catalogue.first or not outcome.follow_ups:
        return False
    target = outcome.follow_ups[0]
    if catalogue.leads_to(target.task.url, note.page):
        return False
    if note.late:  # A late probe is sent even if its target is known, which is useless here.
        outcome.follow_ups = []
    only_read = Note(note.index, note.page)
    target.task.meta = {**target.task.meta, KEY: msgspec.to_builtins(only_read)}
    return True
