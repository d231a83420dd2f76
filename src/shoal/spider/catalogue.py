"""Catalogues: listings of numbered pages, whose pages are all found at once.

A spider says what the address of a page looks like and how to count the pages.
worker/visits/catalogue_pages.py decides which pages are queued after one has been read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from shoal.core.task import DEFAULT_HANDLER, MAX_PRIORITY, Task
from shoal.core.urls import Normaliser, parse
from shoal.errors import BadUrl, ConfigError, Unparsable
from shoal.spider.page import Page
from shoal.spider.page_counts import largest_number, page_size, pages_for, total_of, whole
from shoal.spider.selection import Selection, links_in, parse_query, texts_in

PAGE = "{page}"
"""Stands for the number in the address of a page."""

KEY = "catalogue"
"""The key in a task's `meta` that says which page of which catalogue it reads."""

MAX_PAGE = 2**53
_PageNumber = Annotated[int, Meta(ge=0, le=MAX_PAGE)]


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task's `meta` says about its page of a catalogue. Tasks may be hostile, so it is
    checked when it is read."""

    index: _PageNumber
    """Which of the spider's catalogues it is."""
    page: _PageNumber
    issued: _PageNumber | None = None
    """All pages up to this one are in the frontier. None: this page is only read."""
    high: _PageNumber | None = None
    """A page that was empty: the catalogue ends before it."""
    twin: bool = False
    """The page is read because the page before it was empty."""
    late: bool = False
    """The page was empty, and is read again when everything else is done."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A listing with numbered pages: `Catalogue("https://shop.example/?page={page}", ...)`.

    Exactly one of `last`, `total` and `items` says how its pages are counted.
    """

    url: str
    """The address of its pages, with `{page}` in place of the number."""
    _: KW_ONLY
    last: str | None = None
    """CSS of a link to the last page, or of a text that names it, such as "Page 1 of 400"."""
    total: str | None = None
    """CSS of a text that says how many things there are: "1-20 of 4,813"."""
    per_page: int | None = None
    """The number of things on a page, if the text of `total` does not say "1-20"."""
    items: str | None = None
    """CSS of the things listed. Pages are tried until a page has none."""
    handler: str = DEFAULT_HANDLER
    """The method that reads the pages."""
    priority: int = 10
    """The priority of its pages. Pages that they link to have 0, unless the handler sets it."""
    first: int = 1
    """The number of the first page."""
    limit: int = 10_000
    """The maximum number of pages."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def end(self) -> int:
        """The number of the last page that may be read."""
        return self.first + self.limit - 1

    @property
    def query(self) -> str:
        """The CSS query that counts its pages."""
        return self.last or self.total or self.items or ""

    def address(self, number: int) -> str:
        """The address of the page with this number."""
        return self.url.replace(PAGE, str(number))

    def number_in(self, url: str) -> int | None:
        """The number in an address at the position of `{page}`."""
        match = _place_of(self.url).search(unquote(url))
        return whole(match[1]) if match else None

    def leads_to(self, url: str, number: int) -> bool:
        """Whether an address leads to this page, even if the site now writes it in another way."""
        at_place = self.number_in(url)
        if at_place is not None:
            return at_place == number
        parsed = parse(url)
        return str(number) in re.findall(r"[0-9]+", parsed.pathname + parsed.search)

    def task(self, note: Note) -> Task:
        """The task to read the page of a note."""
        return Task(
            url=self.address(note.page),
            job_type=self.handler,
            priority=self._priority_of(note),
            meta={KEY: msgspec.to_builtins(note)},
            dont_filter=note.late,
        )

    def _priority_of(self, note: Note) -> int:
        """Probes go before pages that are only read: the search must not wait for those."""
        if note.late:  # When all other tasks of its host are done.
            return -MAX_PRIORITY
        is_probe = self.items is not None and note.issued is not None and note.page > self.first
        return min(self.priority + is_probe, MAX_PRIORITY)

    def is_full(self, page: Page) -> bool:
        """Whether anything is listed on a page."""
        return bool(_found(page, self.items or ""))

    def last_named(self, page: Page, number: int) -> int | None:
        """The number of the last page, according to page `number`. None: it does not say."""
        if self.last is not None:
            return max(self._last_pages(page, self.last), default=None)
        text = "\n".join(texts_in(_found(page, self.total or "")))
        total = total_of(text)
        size = page_size(text, number - self.first) or self.per_page
        if total is None or size is None:
            return None
        return self.first + pages_for(total, size) - 1

    def _last_pages(self, page: Page, query: str) -> Iterator[int]:
        """The number of each match: from its link, else from its text."""
        _, colons, pseudo = query.lower().rpartition("::")
        is_text = bool(colons) and pseudo.startswith("text")
        is_value = bool(colons) and pseudo.startswith("attr(")
        for found in _found(page, query):
            number = None if is_text else self._linked(page, next(links_in(found), None))
            text = "".join(texts_in(found)).strip()
            # The value of an attribute that is not such a link may contain any numbers.
            if number is None and (text.isdecimal() or not is_value):
                number = largest_number(text)
            if number is not None:
                yield number

    def _linked(self, page: Page, link: str | None) -> int | None:
        if link is None or link.startswith("#"):  # It leads to the same page.
            return None
        try:
            return self.number_in(page.urljoin(link))
        except BadUrl:
            return None


def catalogues_of(spider: Any) -> Sequence[Catalogue]:
    """The catalogues of a spider or of its class. Raises ConfigError."""
    declared = getattr(spider, "catalogue", ())
    if isinstance(declared, Catalogue):
        return (declared,)
    if callable(declared) or isinstance(declared, property):  # A handler, or not yet known.
        return ()
    if isinstance(declared, list | tuple) and all(isinstance(c, Catalogue) for c in declared):
        return declared
    name = spider.__name__ if isinstance(spider, type) else type(spider).__name__
    raise ConfigError(f"{name}.catalogue must be a Catalogue or a list of them, not {declared!r}")


def first_tasks(catalogues: Sequence[Catalogue]) -> Iterator[Task]:
    """The seeds of catalogues: a task for the first page of each."""
    for index, catalogue in enumerate(catalogues):
        yield catalogue.task(Note(index, catalogue.first, issued=catalogue.first))


def _found(page: Page, query: str) -> Selection:
    """The selection of a CSS query. It is empty if the page cannot be parsed."""
    try:
        return page.css(query)
    except Unparsable:
        return Selection(())


@cache
def _place_of(template: str) -> re.Pattern[str]:
    """A pattern that finds the number in such addresses. Other parts of the address may differ.

    It looks at the parameter, or the part of the path, that has `{page}`. If the number is a whole
    part of the path, the part before it must match too.
    """
    before, _, after = unquote(template).partition(PAGE)
    *_, previous, head = re.split(r"[/?&]", before)
    if not head and before.endswith("/"):
        head = f"{previous}/"
    tail = re.split(r"[/?&#]", after)[0]
    number = "[0-9]+"
    more = number.join(map(re.escape, tail.split(PAGE)))
    return re.compile(rf"[/?&]{re.escape(head)}({number}){more}(?=[/?&#]|$)")


def _check(catalogue: Catalogue) -> None:
    """Raise ConfigError, with one line, if a catalogue cannot work as declared."""
    where = f"Catalogue({catalogue.url!r})"
    if flaw := _flaw(catalogue):
        raise ConfigError(f"{where}: {flaw}")
    try:
        identify = Normaliser().identify
        one, two = (identify(catalogue.address(catalogue.first + n)).normal for n in (0, 1))
        parse_query(catalogue.query)
    except (BadUrl, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None
    if one == two:
        raise ConfigError(f"{where}: all pages would have the same address")


def _flaw(catalogue: Catalogue) -> str | None:
    ways = [catalogue.last, catalogue.total, catalogue.items]
    if not isinstance(catalogue.url, str) or PAGE not in catalogue.url:
        return f"the address has no {PAGE}"
    if sum(way is not None for way in ways) != 1:
        return "give exactly one of last, total and items, to count its pages"
    if not all(isinstance(way, str | None) for way in ways):
        return "last, total and items must be CSS selectors"
    if catalogue.per_page is not None and catalogue.total is None:
        return "per_page needs total"
    if not isinstance(catalogue.handler, str) or not catalogue.handler.isidentifier():
        return f"the handler must be the name of a method, not {catalogue.handler!r}"
    return _wrong_number(catalogue)


def _wrong_number(catalogue: Catalogue) -> str | None:
    """What is wrong with one of its numbers, if anything."""
    per_page = 1 if catalogue.per_page is None else catalogue.per_page
    for name, value, least in (
        ("per_page", per_page, 1),
        ("first", catalogue.first, 0),
        ("limit", catalogue.limit, 1),
        ("priority", catalogue.priority, -MAX_PRIORITY),
    ):
        if type(value) is not int or not least <= value <= MAX_PRIORITY:
            return f"{name} must be a whole number from {least} to {MAX_PRIORITY}, not {value!r}"
    return None
