"""Limits the work of a CSS selector, however a page is made.

Lexbor tries all ways in which ancestors can match a selector: with n spaces in it, its time grows
with the depth of the elements to the power of n. A selector for siblings looks at all of them for
each element. Most selectors are nowhere near the limit, which a few numbers show. Others are first
tried in a process that can be killed, see trial.py.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from math import comb
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from shoal.errors import Unparsable
from shoal.spider import markup, trial

HARMLESS = 300_000_000
"""Steps that take about a second."""

SECONDS = 2.0
"""How long a selector may take. `tr:nth-child(2)` on a table of 20,000 rows takes one second."""

DEPTHS = tuple(2**power for power in range(4, 12))

_NOT_A_COMBINATOR = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^\]]*\]""", re.DOTALL)
_GAP = re.compile(r"(?<=[^\s>+~,(])\s+(?=[^\s>+~,)])")


class Demand(NamedTuple):
    """How much searching a CSS selector needs."""

    gaps: int
    """How many times it looks for an element anywhere below another one."""
    looks_at_siblings: bool


class Shape:
    """How large and how deep a page is. It is measured only if a selector makes it matter."""

    def __init__(self, body: bytes, content_type: str, root: LexborNode) -> None:
        self._body = body
        self._content_type = content_type
        self._root = root
        self._tried: dict[str, Unparsable | None] = {}

    def refuse_endless(self, selector: str) -> None:
        """Raise Unparsable if the selector takes too much time on this page."""
        for demand in demands_of(selector):
            if self._may_be_endless(demand):
                self._try(selector)

    @cached_property
    def _tags(self) -> int:
        return self._html().count(b"<")

    @cached_property
    def _depth(self) -> int:
        """How deeply elements are nested, rounded up to a power of two."""
        is_less = (depth for depth in DEPTHS if not self._root.css_matches(_deeper_than(depth)))
        return next(is_less, self._tags)

    def _may_be_endless(self, demand: Demand) -> bool:
        if _steps(demand, self._tags, self._tags) <= HARMLESS:
            return False
        return _steps(demand, self._tags, self._depth) > HARMLESS

    def _try(self, selector: str) -> None:
        if selector not in self._tried:
            self._tried[selector] = self._flaw(selector)
        if (flaw := self._tried[selector]) is not None:
            raise flaw

    def _html(self) -> bytes:
        return markup.as_utf8(self._body, self._content_type)

    def _flaw(self, selector: str) -> Unparsable | None:
        try:
            trial.check(self._html(), selector, SECONDS)
        except Unparsable:
            return Unparsable(f"{selector!r} takes too long on this page")
        return None


@lru_cache(maxsize=1024)
def demands_of(selector: str) -> tuple[Demand, ...]:
    """The demands of the parts of a selector. Parts that need almost no searching are left out."""
    bare = _NOT_A_COMBINATOR.sub("x", selector.strip())
    # Commas inside `:is(...)` and the like do not separate parts.
    demands = map(_demand_of, [bare] if "(" in bare else bare.split(","))
    return tuple(demand for demand in demands if demand.gaps > 1 or demand.looks_at_siblings)


def _demand_of(bare: str) -> Demand:
    return Demand(len(_GAP.findall(bare)), "~" in bare or ":" in bare)


def _steps(demand: Demand, tags: int, depth: int) -> int:
    """The most steps that a selector can take."""
    return tags * comb(depth, demand.gaps) * (tags if demand.looks_at_siblings else 1)


@lru_cache
def _deeper_than(depth: int) -> str:
    """A selector for elements that are nested this deeply."""
    return " > ".join(["*"] * (depth + 1))
