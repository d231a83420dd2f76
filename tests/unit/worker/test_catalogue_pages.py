"""What follows from a page of a catalogue: which pages are issued, and what is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.task import MAX_PRIORITY, Task
from shoal.frontier.values import Entry, Lease, Outcome, Verdict
from shoal.spider.catalogue import KEY, Catalogue, Note, first_tasks
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.visits.catalogue_pages import NextPages, Pager, next_pages
from support.catalogues import page_of

URL = "https://shop.example/catalog?page={page}"
LAST = Catalogue(URL, last="a.last")
TOTAL = Catalogue(URL, total="p.count")
ITEMS = Catalogue(URL, items="li")
FULL, EMPTY = page_of("<li>a</li>"), page_of("<p>nothing here</p>")


def says(last: int) -> Page:
    return page_of(f'<a class=last href="?page={last}">')


def seed_of(catalogue: Catalogue) -> Note:
    return Note(0, catalogue.first, issued=catalogue.first)


def test_the_first_page_issues_all_others_and_they_issue_only_what_is_new() -> None:
    turned = next_pages(LAST, seed_of(LAST), says(400))
    assert [note.page for note in turned.notes] == list(range(2, 401))
    assert all(next_pages(LAST, note, says(400)) == NextPages() for note in turned.notes)
    grown = next_pages(LAST, turned.notes[0], says(402))
    assert [(note.page, note.issued) for note in grown.notes] == [(401, 402), (402, 402)]
    assert next_pages(LAST, turned.notes[0], says(7)) == NextPages()
    assert next_pages(LAST, turned.notes[-1], None) == NextPages()


@pytest.mark.parametrize("catalogue", [LAST, TOTAL, ITEMS])
def test_a_first_page_that_says_nothing_is_said(catalogue: Catalogue) -> None:
    turned = next_pages(catalogue, seed_of(catalogue), EMPTY)
    assert turned.notes == []
    assert f"{URL}: {catalogue.query!r} found nothing" in turned.warning
    later = Note(0, 2, issued=4, high=8)
    assert next_pages(catalogue, later, EMPTY).warning == ""


def test_an_absurd_number_is_cut_off_and_said_once() -> None:
    turned = next_pages(LAST, seed_of(LAST), says(999_999_999))
    assert len(turned.notes) == 9_999
    assert "only its first 10,000 pages are read: it says 999,999,999" in turned.warning
    assert next_pages(LAST, turned.notes[5], says(999_999_999)) == NextPages()


def test_a_note_of_somebody_hostile_does_no_harm() -> None:
    for note in (
        Note(0, 10**15, issued=0),
        Note(0, 10**15, issued=10**15, high=10**15),
        Note(0, 0, issued=10**15, late=True),
        Note(0, 5, issued=5, high=2),
    ):
        for catalogue in (LAST, ITEMS):
            for page in (FULL, EMPTY, says(10**17), None):
                assert len(next_pages(catalogue, note, page).notes) <= 10_000


class Site:
    """A frontier and a site in one: what `next_pages` issues is visited in any order."""

    def __init__(self, catalogue: Catalogue, is_full: Callable[[int], bool]) -> None:
        self._catalogue = catalogue
        self._is_full = is_full
        self._waiting = [seed_of(catalogue)]
        self.issued = [catalogue.first]
        self._seen = {catalogue.first}
        self.empty: list[int] = []
        self.only_late = False
        self.warnings: list[str] = []

    def crawl(self, pick: Callable[[int], int]) -> None:
        while self._waiting:
            urgent = [n for n, note in enumerate(self._waiting) if not note.late]
            number = urgent[pick(len(urgent))] if urgent else 0
            self.only_late = not urgent
            self._visit(self._waiting.pop(number))

    def _visit(self, note: Note) -> None:
        full = self._is_full(note.page)
        if not full:
            self.empty.append(note.page)
        turned = next_pages(self._catalogue, note, FULL if full else EMPTY)
        self.warnings += [turned.warning] if turned.warning else []
        for further in turned.notes:
            if further.late or further.page not in self._seen:
                self._seen.add(further.page)
                self.issued.append(further.page)
                self._waiting.append(further)


@given(
    st.integers(1, 600),
    st.sets(st.integers(2, 599)),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_probing_finds_every_page_whatever_is_missing(
    count: int, holes: set[int], first: int, random: Any
) -> None:
    last = first + count - 1
    alone = {hole for hole in holes if hole - 1 not in holes and first < hole < last}
    catalogue = Catalogue(URL, items="li", first=first)
    site = Site(catalogue, lambda page: first <= page <= last and page not in alone)
    site.crawl(random.randrange)

    within = [page for page in site.issued if page <= last and page not in alone]
    assert sorted(within) == [page for page in range(first, last + 1) if page not in alone]
    assert set(site.issued) >= alone
    past_the_end = [page for page in site.empty if page > last]
    assert len(past_the_end) <= 2 * (math.log2(count) + 2) + 1
    assert site.warnings == []


def test_an_endless_catalogue_ends_at_the_limit_and_says_so() -> None:
    site = Site(Catalogue(URL, items="li", limit=100), lambda page: True)
    site.crawl(lambda count: 0)
    assert sorted(site.issued) == list(range(1, 101))
    assert [("first 100 pages" in w, "no end" in w) for w in site.warnings] == [(True, True)]


def test_pages_that_came_later_are_read_at_the_end() -> None:
    site = Site(ITEMS, lambda page: page <= (13 if site.only_late else 10))
    site.crawl(lambda count: 0)
    assert [page for page in site.issued if page > 10][-4:] == [11, 12, 13, 14]
    assert site.empty[-1] == 14
    late = ITEMS.task(Note(0, 11, issued=10, late=True))
    assert (late.dont_filter, late.priority) == (True, -MAX_PRIORITY)


def test_a_page_that_cannot_be_parsed_has_nothing_on_it() -> None:
    deep = page_of("<b>" * 100_000 + "<li>")
    for catalogue in (LAST, TOTAL, ITEMS):
        assert next_pages(catalogue, seed_of(catalogue), deep).warning
    assert next_pages(LAST, Note(0, 4, issued=2, high=9), deep) == NextPages()


# Its tasks


class Shop(Spider):
    catalogue = (LAST, ITEMS)


def outcome_of(
    note: Note, verdict: Verdict, reason: str = "", target: str = "", url: str = ""
) -> Outcome:
    task = Shop.catalogue[note.index].task(note)
    task.url = url or task.url
    follow_ups = [Entry(bytes(8), Task(url=target, meta=task.meta))] if target else []
    lease = Lease(bytes(8), "token", task)
    return Outcome(lease=lease, verdict=verdict, reason=reason, follow_ups=follow_ups)


PROBE = Note(1, 64, issued=32)


def test_pages_are_as_deep_as_the_first_and_know_who_found_them() -> None:
    (first, _) = first_tasks(Shop.catalogue)
    page = says(3)
    page.task = first
    first.depth = 2
    two, three = Pager(Shop()).after(page).tasks
    assert (two.url, two.depth, two.parent) == (LAST.address(2), 2, bytes(8).hex())
    assert (two.priority, two.job_type) == (10, "parse")
    assert three.meta == {KEY: {"index": 0, "page": 3, "issued": 3}}


@pytest.mark.parametrize(
    "note",
    [
        *(None, 5, "x", {}, {"index": 0}, {"index": 9, "page": 1, "issued": 1}),
        {"index": 0, "page": -1, "issued": 1},
        {"index": 0, "page": 2, "issued": 1},  # It is the note of another page.
    ],
)
def test_what_is_no_note_of_this_page_leads_nowhere(note: Any) -> None:
    page = says(400)
    page.task.meta = {KEY: note}
    assert Pager(Shop()).after(page).tasks == []


def test_a_page_that_is_gone_is_past_the_end() -> None:
    outcome = outcome_of(PROBE, Verdict.DROPPED, "HTTP 404")
    further = Pager(Shop()).without(outcome, 404)
    assert [task.meta[KEY]["page"] for task in further.tasks] == [48, 65]
    assert outcome.reason == "past the end of the catalogue (HTTP 404)"


@pytest.mark.parametrize(("verdict", "pages"), [(Verdict.DEAD, [48, 65]), (Verdict.RETRY, [])])
def test_a_page_that_fails_for_good_must_not_end_the_search(
    verdict: Verdict, pages: list[int]
) -> None:
    further = Pager(Shop()).without(outcome_of(PROBE, verdict, "HTTP 500"), 500)
    assert [task.meta[KEY]["page"] for task in further.tasks] == pages


@pytest.mark.parametrize(
    ("target", "counts"),
    [
        ("https://www.shop.example/catalog?page=64", True),
        ("https://shop.example/list/64", True),
        ("https://shop.example/catalog?page=1", False),
        ("https://shop.example/catalog?page=1&size=64", False),
        ("https://shop.example:64/", False),
    ],
)
def test_a_redirect_elsewhere_is_no_page(target: str, counts: bool) -> None:
    outcome = outcome_of(PROBE, Verdict.DONE, "HTTP 302", target)
    further = Pager(Shop()).without(outcome, 302)
    assert (further.tasks == []) is counts
    (entry,) = outcome.follow_ups
    assert ("issued" in entry.task.meta[KEY]) is counts
    assert outcome.lease.task.meta[KEY]["issued"] == 32


def test_the_first_page_may_be_anywhere_but_must_be_somewhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = Note(0, 1, issued=1)
    moved = outcome_of(first, Verdict.DONE, "HTTP 301", "https://shop.example/all")
    assert Pager(Shop()).without(moved, 301).tasks == []
    assert caplog.messages == []
    page = page_of('<a class=last href="/catalog?page=2">', "https://shop.example/all")
    page.task = Task(url=page.url, meta=moved.lease.task.meta, redirects=[LAST.address(1)])
    assert [task.url for task in Pager(Shop()).after(page).tasks] == [LAST.address(2)]
    gone = outcome_of(first, Verdict.DROPPED, "HTTP 404")
    Pager(Shop()).without(gone, 404)
    assert (gone.reason, caplog.messages) == (
        "HTTP 404",
        [f"catalogue {URL}: its first page could not be read: HTTP 404"],
    )
