"""The controls of a form: which elements of a page belong to it, and which of them are disabled.

An element belongs to the form that its attribute `form` names, else to the one around it. Where a
form begins between the rows of a table, parsers leave it there empty, and what follows in that
table is its own. Every element is looked at once, however they are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from selectolax.lexbor import LexborNode

from shoal.errors import Unparsable

MAX_CONTROLS = 10_000
"""Of a page: more are no form that people fill in."""
MAX_OPTIONS = 50_000
MAX_STEPS = 500_000
"""Elements around controls that are looked at."""

CONTROLS = "button, input, select, textarea"
_INPUTS = frozenset(
    [
        "button",
        "checkbox",
        "color",
        "date",
        "datetime-local",
        "email",
        "file",
        "hidden",
        "image",
        "month",
        "number",
        "password",
        "radio",
        "range",
        "reset",
        "search",
        "submit",
        "tel",
        "text",
        "time",
        "url",
        "week",
    ]
)
_BUTTONS = frozenset({"button", "reset"})
_OF_TABLES = frozenset({"table", "tbody", "tfoot", "thead", "tr"})


class Control(msgspec.Struct):
    """Something that people fill in, choose from or press."""

    node: LexborNode
    kind: str
    """The type of an input or a button; `select` and `textarea`."""
    attributes: dict[str, str]
    is_disabled: bool

    @property
    def name(self) -> str:
        """Empty if it has none: then it is not sent."""
        return self.attributes.get("name", "")

    @property
    def id(self) -> int:
        """Tells it from all others of its page."""
        return self.node.mem_id


class _Around(NamedTuple):
    """What the elements around one mean to it."""

    form: int = 0
    """Which form it is in. 0: none."""
    is_disabled: bool = False
    is_suggestion: bool = False
    """Whether it is in a list of suggestions, and so never sent."""


def attributes_of(node: LexborNode) -> dict[str, str]:
    """Those without a value have an empty one."""
    return {name: value or "" for name, value in node.attributes.items()}


def controls_of(root: LexborNode, form: LexborNode) -> list[Control]:
    """What belongs to a form of a page, in the order of the page. Raises Unparsable if there is too
    much of it."""
    nodes = root.css(CONTROLS)
    if len(nodes) > MAX_CONTROLS:
        raise Unparsable(f"the page has more than {MAX_CONTROLS:,} fields")
    if len(root.css("option")) > MAX_OPTIONS:
        raise Unparsable(f"the page has more than {MAX_OPTIONS:,} options to choose from")
    surroundings = _Surroundings()
    strays = _strays(root, surroundings)
    named = _name_of(root, form)
    found = []
    for node in nodes:
        attributes, around = attributes_of(node), surroundings.of(node)
        if "form" in attributes:
            is_ours = attributes["form"] == named is not None
        else:
            is_ours = strays.get(node.mem_id, around.form) == form.mem_id
        if is_ours and not around.is_suggestion:
            is_disabled = around.is_disabled or "disabled" in attributes
            found.append(Control(node, _kind(node, attributes), attributes, is_disabled))
    return found


def _kind(node: LexborNode, attributes: dict[str, str]) -> str:
    kind = attributes.get("type", "").lower()
    if node.tag == "input":
        return kind if kind in _INPUTS else "text"
    if node.tag == "button":
        return kind if kind in _BUTTONS else "submit"
    return str(node.tag)


def _name_of(root: LexborNode, form: LexborNode) -> str | None:
    """The id by which controls elsewhere may name a form: of several elements with one id it is the
    first that is meant. None: they cannot."""
    name = form.attrs.get("id", None)
    if not name:
        return None
    first = next((node for node in root.css("[id]") if node.attrs.get("id", None) == name), None)
    return name if first is not None and first.mem_id == form.mem_id else None


class _Surroundings:
    """Finds out what is around elements. What is known of one holds for all that are in it."""

    def __init__(self) -> None:
        self._known: dict[int, _Around] = {}
        self._legends: dict[int, int] = {}
        self._steps = 0

    def of(self, node: LexborNode) -> _Around:
        """What is around a node. Raises Unparsable if that is too much."""
        path = []
        at: LexborNode | None = node
        while at is not None and at.mem_id not in self._known:
            path.append(at)
            at = at.parent
        self.count(len(path))
        outer = at
        for inner in reversed(path):
            known = _Around() if outer is None else self._known[outer.mem_id]
            self._known[inner.mem_id] = self._inside(known, outer, inner)
            outer = inner
        return self._known[node.mem_id]

    def count(self, steps: int) -> None:
        """Note the work that is done. Raises Unparsable if it gets too much."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise Unparsable("the page's forms are nested too deep")

    def _inside(self, around: _Around, outer: LexborNode | None, inner: LexborNode) -> _Around:
        if outer is None:
            return around
        match outer.tag:
            case "form":
                return around._replace(form=outer.mem_id)
            case "datalist":
                return around._replace(is_suggestion=True)
            case "fieldset" if "disabled" in outer.attributes:
                if self._legend(outer) != inner.mem_id:
                    return around._replace(is_disabled=True)
        return around

    def _legend(self, fieldset: LexborNode) -> int:
        """The first legend of a fieldset: what is in it stays enabled."""
        if fieldset.mem_id not in self._legends:
            legends = (child.mem_id for child in self._children(fieldset) if child.tag == "legend")
            self._legends[fieldset.mem_id] = next(legends, 0)
        return self._legends[fieldset.mem_id]

    def _children(self, node: LexborNode) -> Iterator[LexborNode]:
        child = node.first_child
        while child is not None:
            self.count(1)
            yield child
            child = child.next


def _strays(root: LexborNode, surroundings: _Surroundings) -> dict[int, int]:
    """Which controls belong to forms that begin in a table: the forms by the controls."""
    if not any(map(_is_stray, root.css("form"))):
        return {}
    strays = {}
    current, inside = 0, frozenset[int]()
    known: dict[int, frozenset[int]] = {}
    for node in root.css(f"form, {CONTROLS}"):
        if node.tag == "form":
            current = node.mem_id if _is_stray(node) else 0
            inside = _inside_table(node, known, surroundings) if current else inside
        elif current and node.mem_id in inside:
            strays[node.mem_id] = current
    return strays


def _is_stray(form: LexborNode) -> bool:
    parent = form.parent
    return form.first_child is None and parent is not None and parent.tag in _OF_TABLES


def _inside_table(
    form: LexborNode, known: dict[int, frozenset[int]], surroundings: _Surroundings
) -> frozenset[int]:
    table = next(node for node in _ancestors(form) if node.tag in ("table", "html"))
    if table.mem_id not in known:
        found = table.css(CONTROLS)
        surroundings.count(len(found) + 1)
        known[table.mem_id] = frozenset(node.mem_id for node in found)
    return known[table.mem_id]


def _ancestors(node: LexborNode) -> Iterable[LexborNode]:
    """At most four lead from a form that begins in a table to the table."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
