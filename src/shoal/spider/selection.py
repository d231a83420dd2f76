"""CSS selections of a page, by Lexbor, with queries as in Scrapy: `h1::text`, `a::attr(href)`.

`h1::text` is each text directly inside an h1; `h1 ::text`, with a space, is all text below it too.
A selection searches only when it is used, and `.get()` stops at the first result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Never, Protocol, overload

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from shoal.errors import Unparsable
from shoal.spider.effort import Shape
from shoal.spider.scrapy_words import unknown_attribute

Found = LexborNode | str
"""A result: an element, or the text or attribute value that the query asked for."""

NUL = "\0"
"""Joins texts that are split again later. An HTML parser never lets it into a tree."""

_TOKEN = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[()\[\],]""", re.DOTALL)
_PSEUDO = re.compile(r"""::(?:text|attr\(\s*["']?([^\s"'()]+)["']?\s*\))$""", re.IGNORECASE)
_ALL_BELOW = re.compile(r"(.*[^\s>+~])\s+\*?", re.DOTALL)
_WANTS_ELEMENT = re.compile(r"(^|[\s>+~])$")
MAX_TEXT = 128 * 1024 * 1024
"""The most characters that all results of one query may have together."""

SRC_TAGS = frozenset({"img", "script", "iframe", "frame", "source"})


class Part(Protocol):
    """One part of a query's comma list."""

    @property
    def selector(self) -> str | None: ...

    def first(self, scope: LexborNode) -> Found | None: ...

    def all(self, scope: LexborNode) -> Iterator[Found]: ...


class Elements:
    """`a`: the elements. It is a whole comma list if no part of it has a pseudo-element."""

    def __init__(self, selector: str) -> None:
        self.selector = selector

    def first(self, scope: LexborNode) -> Found | None:
        return scope.css_first(self.selector)

    def all(self, scope: LexborNode) -> Iterator[Found]:
        return iter(_matches(scope, self.selector))


class Attributes:
    """`a::attr(href)`: the values of the attribute. Elements without it are skipped."""

    def __init__(self, selector: str, name: str) -> None:
        self.selector = selector
        self._name = name

    def first(self, scope: LexborNode) -> Found | None:
        node = scope.css_first(self.selector)
        if node is None:
            return None
        value = node.attrs.get(self._name, NUL)
        return next(self.all(scope), None) if value == NUL else value or ""

    def all(self, scope: LexborNode) -> Iterator[Found]:
        for node in _matches(scope, self.selector):
            value = node.attrs.get(self._name, NUL)
            if value != NUL:
                yield value or ""


class Texts:
    """`h1::text`: each text directly inside the elements, in document order."""

    def __init__(self, selector: str) -> None:
        self.selector = selector

    def first(self, scope: LexborNode) -> Found | None:
        node = scope.css_first(self.selector)
        if node is None:
            return None
        child = node.first_child
        text = None if child is None else child.text_content
        return next(self.all(scope), None) if text is None else text

    def all(self, scope: LexborNode) -> Iterator[Found]:
        matches = iter(scope.css(self.selector))
        for node in matches:
            own = node.text(deep=False, separator=NUL)
            inside = [] if own == node.text(deep=True, separator=NUL) else node.css(self.selector)
            if len(inside) > 1:
                # Other matches are inside this one, and their texts may come between its own.
                yield from _texts_in_order(node, {inner.mem_id for inner in inside})
                _skip(matches, len(inside) - 1)
            elif own:
                yield from own.split(NUL)


class AllTexts:
    """`h1 ::text`: each text below the elements, at any depth; or below the scope: `::text`."""

    def __init__(self, selector: str | None) -> None:
        self.selector = selector

    def first(self, scope: LexborNode) -> Found | None:
        node = scope.css_first(self.selector) if self.selector else scope
        if node is None:
            return None
        text = node.text(deep=True, separator=NUL)
        return text.partition(NUL)[0] if text else next(self.all(scope), None)

    def all(self, scope: LexborNode) -> Iterator[Found]:
        matches = iter(scope.css(self.selector) if self.selector else [scope])
        for node in matches:
            text = node.text(deep=True, separator=NUL)
            yield from text.split(NUL) if text else ()
            if self.selector:
                _skip(matches, len(node.css(self.selector)) - 1)


def _matches(scope: LexborNode, selector: str) -> list[LexborNode]:
    nodes = scope.css(selector)
    if "," not in selector:
        return nodes
    # Lexbor reports an element once for every part of the list that it matches.
    return list({node.mem_id: node for node in nodes}.values())


def _texts_in_order(root: LexborNode, parents: set[int]) -> Iterator[str]:
    for node in root.traverse(include_text=True):
        text = node.text_content
        if text is not None and node.parent is not None and node.parent.mem_id in parents:
            yield text


def _skip(matches: Iterator[LexborNode], count: int) -> None:
    """Skip the matches inside a match: they come next, because matches are in document order."""
    for _ in range(count):
        next(matches, None)


@lru_cache(maxsize=1024)
def parse_query(query: str) -> tuple[Part, ...]:
    """Split a query into its parts. Raises ValueError if it is not valid CSS."""
    pieces = _split_at_commas(query)
    if any(_PSEUDO.search(piece) for piece in pieces):
        parts = tuple(_part(piece) for piece in pieces)
    else:
        parts = (Elements(query),)
    _check(query, parts)
    return parts


def _part(piece: str) -> Part:
    pseudo = _PSEUDO.search(piece)
    if not pseudo:
        return Elements(piece)
    head, attribute = piece[: pseudo.start()], pseudo[1]
    if below := _ALL_BELOW.fullmatch(head):
        outer = below[1]
        return Attributes(f"{outer}, {outer} *", attribute) if attribute else AllTexts(outer)
    if head in ("", "*") and not attribute:
        return AllTexts(None)
    if _WANTS_ELEMENT.search(head):
        head += "*"
    return Attributes(head, attribute) if attribute else Texts(head)


def _split_at_commas(query: str) -> list[str]:
    """The parts of a comma list. Commas in brackets and quotes do not separate parts."""
    pieces, start, depth = [], 0, 0
    for token in _TOKEN.finditer(query):
        sign = token.group()
        if sign in ("(", "["):
            depth += 1
        elif sign in (")", "]"):
            depth -= 1
        elif sign == "," and depth == 0:
            pieces.append(query[start : token.start()].strip())
            start = token.end()
    return [*pieces, query[start:].strip()]


def _check(query: str, parts: Sequence[Part]) -> None:
    """Raise ValueError if a part is not valid. Lexbor only finds out when it runs a selector."""
    nothing = LexborHTMLParser("")
    try:
        for part in parts:
            if part.selector is not None:
                nothing.css_first(part.selector)
    except (SelectolaxError, UnicodeEncodeError):
        raise ValueError(f"not a CSS selector: {query!r}{_rather(query)}") from None


def _rather(query: str) -> str:
    """A hint what to write instead of an XPath query or an address."""
    if query.startswith(("//", "./", "(")):
        return " (page.xpath() takes XPath)"
    return " (page.follow() takes a URL)" if query.startswith(("/", "http")) else ""


class Selection:
    """What a query found: elements, texts or attribute values, in document order."""

    __slots__ = ("_found", "_parts", "_scope", "_shape")

    def __init__(
        self,
        scope: Sequence[Found],
        parts: tuple[Part, ...] = (),
        shape: Shape | None = None,
    ) -> None:
        """Select what `parts` find in the scope's elements; without parts, the scope itself.

        `shape` is the shape of their page, if the page may be hostile.
        """
        self._scope = scope
        self._parts = parts
        self._shape = shape
        self._found: Sequence[Found] | None = None if parts else scope

    @overload
    def get(self, default: None = None) -> str | None: ...
    @overload
    def get(self, default: str) -> str: ...
    def get(self, default: str | None = None) -> str | None:
        """The first result as text. For an element, that is its HTML."""
        first = self._first()
        return default if first is None else _as_text(first)

    def getall(self) -> list[str]:
        """All results as text."""
        return list(_bounded(self._all()))

    def css(self, query: str) -> Selection:
        """What the query finds below these elements and among them."""
        return Selection(self._all(), parse_query(query), self._shape)

    @property
    def attrib(self) -> dict[str, str]:
        """The attributes of the first element; empty if there is none."""
        first = self._first()
        if first is None or isinstance(first, str):
            return {}
        return {name: value or "" for name, value in first.attributes.items()}

    def __iter__(self) -> Iterator[Selection]:
        return (Selection((found,), (), self._shape) for found in self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return self._first() is not None

    def __getitem__(self, index: int | slice) -> Selection:
        found = self._all()
        scope = found[index] if isinstance(index, slice) else (found[index],)
        return Selection(scope, (), self._shape)

    def __repr__(self) -> str:
        return f"<Selection of {len(self)}>"

    if not TYPE_CHECKING:  # To mypy, any attribute would exist.

        def __getattr__(self, name: str) -> Never:
            raise unknown_attribute(self, name)

    def _first(self) -> Found | None:
        if self._found is not None:
            return self._found[0] if self._found else None
        self._refuse_endless()
        for scope in self._scope:
            if isinstance(scope, str):
                continue  # A text has nothing below it.
            for part in self._parts:
                if (first := part.first(scope)) is not None:
                    return first
        return None

    def _all(self) -> Sequence[Found]:
        if self._found is None:
            self._refuse_endless()
            found: list[Found] = []
            for scope in self._scope:
                if not isinstance(scope, str):
                    for part in self._parts:
                        found.extend(part.all(scope))
            self._found = found
        return self._found

    def _refuse_endless(self) -> None:
        if self._shape is not None:
            for part in self._parts:
                if part.selector is not None:
                    self._shape.refuse_endless(part.selector)


def links_in(selection: Selection) -> Iterator[str]:
    """The links of a selection: values as they are, the href of elements (src of images, ...)."""
    for found in selection._all():
        if isinstance(found, str):
            yield found
            continue
        link = found.attrs.get("src" if found.tag in SRC_TAGS else "href", NUL)
        if link != NUL:
            yield link or ""


def elements_in(selection: Selection) -> Iterator[LexborNode]:
    """The elements of a selection."""
    return (found for found in selection._all() if not isinstance(found, str))


def texts_in(selection: Selection) -> Iterator[str]:
    """The texts of a selection: values as they are, and all text below elements, in lines."""
    for found in selection._all():
        yield found if isinstance(found, str) else found.text(deep=True, separator="\n")


def _bounded(all_found: Sequence[Found]) -> Iterator[str]:
    """Results as text. Raises Unparsable if they are too long: nested elements repeat text."""
    left = MAX_TEXT
    for found in all_found:
        text = _as_text(found)
        left -= len(text)
        if left < 0:
            raise Unparsable(f"the results are longer than {MAX_TEXT:,} characters")
        yield text


def _as_text(found: Found) -> str:
    return found if isinstance(found, str) else found.html or ""
