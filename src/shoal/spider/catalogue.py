"""Catalogues: listings of numbered pages, all of which are found at once.

A spider says what the address of a page looks like and how the pages can be counted. Which pages
are queued after one was read is decided in worker/visits/catalogue_pages.py.
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
"""Where a task's `meta` says which page of which catalogue it is."""

MAX_PAGE = 2**53
_PageNumber = Annotated[int, Meta(ge=0, le=MAX_PAGE)]


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task's `meta` says about its page of a catalogue. Tasks may be hostile: it is checked
    when read."""

    index: _PageNumber
    """Which of the spider's catalogues."""
    page: _PageNumber
    issued: _PageNumber | None = None
    """All pages up to this one are in the frontier. None: this page is only read."""
    high: _PageNumber | None = None
    """A page that was found empty: the end is before it."""
    twin: bool = False
    """It is looked at because the page before it was empty."""
    late: bool = False
    """It was empty, and is looked at again when all else is done."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A listing whose pages are numbered: `Catalogue("https://shop.example/?page={page}", ...)`.

    Exactly one of `last`, `total` and `items` says how its pages are counted.
    """

    url: str
    """The address of its pages, with `{page}` in place of the number."""
    _: KW_ONLY
    last: str | None = None
    """CSS of what names the last page: a link to it, or a text such as "Page 1 of 400"."""
    total: str | None = None
    """CSS of a text that says how many things there are: "1-20 of 4,813"."""
    per_page: int | None = None
    """Things on a page, where the text of `total` does not say "1-20"."""
    items: str | None = None
    """CSS of the things listed. Pages are tried until there are none on a page."""
    handler: str = DEFAULT_HANDLER
    """The method that reads the pages."""
    priority: int = 10
    """Of its pages. What they lead to has 0, unless the handler says otherwise."""
    first: int = 1
    """The number of the first page."""
    limit: int = 10_000
    """Never more pages than this."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def end(self) -> int:
        """The number of the last page that may be read."""
        return self.first + self.limit - 1

    @property
    def query(self) -> str:
        """The CSS by which its pages are counted."""
        return self.last or self.total or self.items or ""

    def address(self, number: int) -> str:
        """The address of the page with this number."""
        return self.url.replace(PAGE, str(number))

    def number_in(self, url: str) -> int | None:
        """The number that an address has at the place of `{page}`."""
        match = _place_of(self.url).search(unquote(url))
        return whole(match[1]) if match else None

    def leads_to(self, url: str, number: int) -> bool:
        """Whether an address is that of a page, though the site may now write it in another way."""
        at_place = self.number_in(url)
        if at_place is not None:
            return at_place == number
        parsed = parse(url)
        return str(number) in re.findall(r"[0-9]+", parsed.pathname + parsed.search)

    def task(self, note: Note) -> Task:
        """The task to read the page that a note is about."""
        return Task(
            url=self.address(note.page),
            job_type=self.handler,
            priority=self._priority_of(note),
            meta={KEY: msgspec.to_builtins(note)},
            dont_filter=note.late,
        )

    def _priority_of(self, note: Note) -> int:
        """A probe goes before the pages that are only read: the search must not wait for them."""
        if note.late:  # When all else is done, as far as its host goes.
            return -MAX_PRIORITY
        is_probe = self.items is not None and note.issued is not None and note.page > self.first
        return min(self.priority + is_probe, MAX_PRIORITY)

    def is_full(self, page: Page) -> bool:
        """Whether anything is listed on a page."""
        return bool(_found(page, self.items or ""))

    def last_named(self, page: Page, number: int) -> int | None:
        """The number of the last page, by what is on page `number`. None: it does not say."""
        if self.last is not None:
            return max(self._last_pages(page, self.last), default=None)
        text = "\n".join(texts_in(_found(page, self.total or "")))
        total = total_of(text)
        size = page_size(text, number - self.first) or self.per_page
        if total is None or size is None:
            return None
        return self.first + pages_for(total, size) - 1

    def _last_pages(self, page: Page, query: str) -> Iterator[int]:
        """The number of each thing found: in its link at the right place, or else in its text."""
        _, colons, pseudo = query.lower().rpartition("::")
        is_text = bool(colons) and pseudo.startswith("text")
        is_value = bool(colons) and pseudo.startswith("attr(")
        for found in _found(page, query):
            number = None if is_text else self._linked(page, next(links_in(found), None))
            text = "".join(texts_in(found)).strip()
            # A value of an attribute that is no such link may hold any numbers.
            if number is None and (text.isdecimal() or not is_value):
                number = largest_number(text)
            if number is not None:
                yield number

    def _linked(self, page: Page, link: str | None) -> int | None:
        if link is None or link.startswith("#"):  # That one leads to the page it is on.
            return None
        try:
            return self.number_in(page.urljoin(link))
        except BadUrl:
            return None


def catalogues_of(spider: Any) -> Sequence[Catalogue]:
    """The catalogues of a spider, or of its class. Raises ConfigError."""
    declared = getattr(spider, "catalogue", ())
    if isinstance(declared, Catalogue):
        return (declared,)
    if callable(declared) or isinstance(declared, property):  # A handler; not known of the class.
        return ()
    if isinstance(declared, list | tuple) and all(isinstance(c, Catalogue) for c in declared):
        return declared
    name = spider.__name__ if isinstance(spider, type) else type(spider).__name__
    raise ConfigError(f"{name}.catalogue must be a Catalogue or a list of them, not {declared!r}")


def first_tasks(catalogues: Sequence[Catalogue]) -> Iterator[Task]:
    """The seeds of catalogues: a task to read the first page of each."""
    for index, catalogue in enumerate(catalogues):
        yield catalogue.task(Note(index, catalogue.first, issued=catalogue.first))


def _found(page: Page, query: str) -> Selection:
    """The selection of a CSS query; an empty one on a page that cannot be parsed."""
    try:
        return page.css(query)
    except Unparsable:
        return Selection(())


@cache
def _place_of(template: str) -> re.Pattern[str]:
    """Finds the number in addresses like this one; other parts of the address may differ.

    The place is the parameter, or the part of the path, that `{page}` is in. Where the number is a
    whole part of the path, the part before it belongs to the place too.
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
    """Raise ConfigError, with one line, if a catalogue is declared in a way that cannot work."""
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
        return "exactly one of last, total and items says how its pages are counted"
    if not all(isinstance(way, str | None) for way in ways):
        return "last, total and items are CSS selectors"
    if catalogue.per_page is not None and catalogue.total is None:
        return "per_page goes with total"
    if not isinstance(catalogue.handler, str) or not catalogue.handler.isidentifier():
        return f"the handler is the name of a method, not {catalogue.handler!r}"
    return _wrong_number(catalogue)


def _wrong_number(catalogue: Catalogue) -> str | None:
    """What is wrong with one of its numbers."""
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
