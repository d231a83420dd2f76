"""How much work a CSS selector may be, however a page is made.

Lexbor tries all ways in which ancestors can fit a selector: with n spaces in it, its time grows
with the depth of the elements to the power of n. What asks for siblings looks at all of them for
each element. Most selectors are nowhere near, which a few numbers show. One that may be is tried in
a process that can be ended first, see trial.py.
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
"""What a selector may take. Twenty thousand rows of a table and `tr:nth-child(2)` take one."""

DEPTHS = tuple(2**power for power in range(4, 12))

_NOT_A_COMBINATOR = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^\]]*\]""", re.DOTALL)
_GAP = re.compile(r"(?<=[^\s>+~,(])\s+(?=[^\s>+~,)])")


class Demand(NamedTuple):
    """How much searching a CSS selector asks for."""

    gaps: int
    """How often it says that an element is somewhere below another one."""
    looks_at_siblings: bool


class Shape:
    """How large and how deep a page is: found out when a selector makes it matter."""

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
        """How deep elements are in one another, to the next power of two."""
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
    """What the parts of a selector ask for, those that ask for next to nothing left out."""
    bare = _NOT_A_COMBINATOR.sub("x", selector.strip())
    # Commas inside `:is(...)` and the like part nothing.
    demands = map(_demand_of, [bare] if "(" in bare else bare.split(","))
    return tuple(demand for demand in demands if demand.gaps > 1 or demand.looks_at_siblings)


def _demand_of(bare: str) -> Demand:
    return Demand(len(_GAP.findall(bare)), "~" in bare or ":" in bare)


def _steps(demand: Demand, tags: int, depth: int) -> int:
    """How many steps a selector takes at most."""
    return tags * comb(depth, demand.gaps) * (tags if demand.looks_at_siblings else 1)


@lru_cache
def _deeper_than(depth: int) -> str:
    """What finds an element that is in so many others."""
    return " > ".join(["*"] * (depth + 1))
