"""The controls of a form: which elements of a page belong to it, and which of them are disabled.

An element belongs to the form that its attribute `form` names, else to the one around it. If a form
begins between the rows of a table, parsers leave it empty, and the controls after it in that table
belong to it. Every element is visited once, however deeply they are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from selectolax.lexbor import LexborNode

from shoal.errors import Unparsable

MAX_CONTROLS = 10_000
"""The most controls on a page: nobody fills in a form with more."""
MAX_OPTIONS = 50_000
MAX_STEPS = 500_000
"""The most elements around controls that are visited."""

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
    """A field, a list of choices or a button of a form."""

    node: LexborNode
    kind: str
    """The type of an input or a button; `select` and `textarea`."""
    attributes: dict[str, str]
    is_disabled: bool

    @property
    def name(self) -> str:
        """Its name. A control without a name (empty) is not sent."""
        return self.attributes.get("name", "")

    @property
    def id(self) -> int:
        """Unique on its page."""
        return self.node.mem_id


class _Around(NamedTuple):
    """What the elements around a control mean for it."""

    form: int = 0
    """The form that it is in. 0: none."""
    is_disabled: bool = False
    is_suggestion: bool = False
    """Whether it is in a list of suggestions. Then it is never sent."""


def attributes_of(node: LexborNode) -> dict[str, str]:
    """The attributes of an element. Attributes without a value have an empty one."""
    return {name: value or "" for name, value in node.attributes.items()}


def controls_of(root: LexborNode, form: LexborNode) -> list[Control]:
    """The controls of a form, in the order of the page. Raises Unparsable if there are too many."""
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
    """The id with which controls elsewhere may name a form. None if they cannot: an id names the
    first element that has it."""
    name = form.attrs.get("id", None)
    if not name:
        return None
    first = next((node for node in root.css("[id]") if node.attrs.get("id", None) == name), None)
    return name if first is not None and first.mem_id == form.mem_id else None


class _Surroundings:
    """Finds out what is around elements. Results are kept for the elements inside them."""

    def __init__(self) -> None:
        self._known: dict[int, _Around] = {}
        self._legends: dict[int, int] = {}
        self._steps = 0

    def of(self, node: LexborNode) -> _Around:
        """What is around a node. Raises Unparsable if finding out takes too many steps."""
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
        """Count steps. Raises Unparsable if there are too many."""
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
        """The first legend of a fieldset. Controls in it stay enabled."""
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
    """The forms that begin in a table, by the controls that belong to them."""
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
    """All elements around a node. From a form in a table, the table is at most four away."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
