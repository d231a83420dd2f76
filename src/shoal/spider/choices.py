"""The values that a control of a form sends: its own, or those that a user gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from shoal.core.bodies import NO_FILE, File, file_of, text_of
from shoal.spider.controls import Control, attributes_of

Value = str | File
"""One value that a control sends."""

BOXES = frozenset({"checkbox", "radio"})
PRESSED = frozenset({"submit", "image"})
"""Buttons that send the form when they are pressed."""
NEVER_SENT = frozenset({"button", "reset"})
MAX_SHOWN = 10

_ONE_LINE = frozenset({"text", "search", "tel", "password", "url", "email"})
_NEWLINES = re.compile(r"[\r\n]+")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_SPACE = re.compile(r"[ \t\n\f\r]+")
_NUMBER = re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?")


class Option(msgspec.Struct):
    """An option of a select."""

    value: str
    is_selected: bool
    is_disabled: bool


def value_of(control: Control) -> str:
    """The value of a control on the page, whether it is sent or not."""
    if control.kind == "textarea":
        return control.node.text(deep=True)
    value = control.attributes.get("value")
    if control.kind in BOXES:
        return "on" if value is None else value
    return _sanitised(control, value or "")


def _sanitised(control: Control, value: str) -> str:
    """The value of an input, corrected as browsers do."""
    kind = control.kind
    if kind in _ONE_LINE:
        value = _NEWLINES.sub("", value)
        return value.strip(" \t\f") if kind in ("url", "email") else value
    if kind == "color":
        return value.lower() if _COLOR.fullmatch(value) else "#000000"
    if kind == "number":
        return value if _NUMBER.fullmatch(value) else ""
    if kind == "range":
        return value if _NUMBER.fullmatch(value) else _middle(control.attributes)
    return value


def _middle(attributes: Mapping[str, str]) -> str:
    """The value of a slider that nobody has moved."""
    ends = (attributes.get("min", ""), attributes.get("max", ""))
    least, most = (float(end) if _NUMBER.fullmatch(end) else None for end in ends)
    least, most = least or 0.0, 100.0 if most is None else most
    return f"{least if most < least else least + (most - least) / 2:g}"


def defaults(controls: Iterable[Control]) -> dict[int, list[Value]]:
    """The values that untouched controls send, by their ids. Buttons send nothing."""
    sent: dict[int, list[Value]] = {}
    radios: dict[str, int] = {}
    for control in controls:
        sent[control.id] = _default(control)
        if control.kind == "radio" and sent[control.id]:
            # If several are checked, only the last one counts.
            if control.name in radios:
                sent[radios[control.name]] = []
            radios[control.name] = control.id
    return sent


def _default(control: Control) -> list[Value]:
    kind = control.kind
    if kind in PRESSED or kind in NEVER_SENT:
        return []
    if kind in BOXES:
        return [value_of(control)] if "checked" in control.attributes else []
    if kind == "file":
        return [NO_FILE]
    if kind == "select":
        return [*_selected(control)]
    return [value_of(control)]


def _selected(select: Control) -> list[str]:
    options = options_of(select)
    selected = [option for option in options if option.is_selected]
    if "multiple" not in select.attributes:
        if not selected and _is_closed(select):
            selected = [option for option in options if not option.is_disabled][:1]
        selected = selected[-1:]
    return [option.value for option in selected if not option.is_disabled]


def _is_closed(select: Control) -> bool:
    """Whether it shows only one option. Then one is always selected."""
    size = select.attributes.get("size", "").strip()
    return not (size.isascii() and size.isdigit() and int(size[:9]) > 1)


def options_of(select: Control) -> list[Option]:
    """The options of a select, in order."""
    found = []
    for node in select.node.css("option"):
        attributes = attributes_of(node)
        value = attributes.get("value")
        if value is None:
            value = _SPACE.sub(" ", node.text(deep=True)).strip(" ")
        group = node.parent
        is_off = "disabled" in attributes or (
            group is not None and group.tag == "optgroup" and "disabled" in group.attributes
        )
        found.append(Option(value, "selected" in attributes, is_off))
    return found


def fill(name: str, controls: list[Control], given: object) -> dict[int, list[Value]]:
    """The values that the controls of one name send for what a user gave, by their ids. None: they
    send nothing. Raises ValueError if they cannot send it."""
    if given is None:
        return {control.id: [] for control in controls}
    # A check box may have a hidden field of the same name, which means "no".
    shown = [control for control in controls if control.kind != "hidden"] or controls
    shown = [control for control in shown if not control.is_disabled] or shown
    if isinstance(given, bool):
        return _tick(name, shown, on=given)
    left = _wanted(name, given)
    filled = {control.id: _take(control, left) for control in shown}
    sent = {number: values for number, values in filled.items() if values is not None}
    _check_radios(name, shown, sent)
    if left:
        raise ValueError(_not_taken(name, shown, left[0]))
    return sent


def _tick(name: str, controls: list[Control], *, on: bool) -> dict[int, list[Value]]:
    boxes = [control for control in controls if control.kind == "checkbox"]
    if not boxes:
        raise ValueError(f"field {name!r} is not a check box: it takes text, not {on}")
    if on and len(boxes) > 1:
        raise ValueError(f"there are {len(boxes)} check boxes {name!r}: give their values")
    return {box.id: [value_of(box)] if on else [] for box in boxes}


def _wanted(name: str, given: object) -> list[Value]:
    """The values that a user gave for a name."""
    is_file = isinstance(given, tuple) and len(given) > 1 and isinstance(given[1], bytes)
    several = isinstance(given, list | tuple | set | frozenset) and not is_file
    values = list(given) if several and isinstance(given, Iterable) else [given]
    return [
        file_of(value, name) if isinstance(value, tuple) else text_of(value, name)
        for value in values
    ]


def _take(control: Control, left: list[Value]) -> list[Value] | None:
    """The values that a control takes from those that are left. None: it stays as it is."""
    if control.kind in BOXES:
        return _taken([value_of(control)], left, most=1)
    if control.kind == "select":
        most = len(left) if "multiple" in control.attributes else 1
        return _taken((option.value for option in options_of(control)), left, most)
    is_file = control.kind == "file"
    fitting = [value for value in left if isinstance(value, File) == is_file]
    taken = fitting if is_file and "multiple" in control.attributes else fitting[:1]
    for value in taken:
        left.remove(value)
    return taken or None


def _taken(offered: Iterable[str], left: list[Value], most: int) -> list[Value]:
    taken: list[Value] = []
    for value in offered:
        if len(taken) < most and value in left:
            left.remove(value)
            taken.append(value)
    return taken


def _check_radios(name: str, controls: list[Control], sent: Mapping[int, list[Value]]) -> None:
    radios = [control for control in controls if control.kind == "radio" and sent.get(control.id)]
    if len(radios) > 1:
        raise ValueError(f"only one of the radio buttons {name!r} can be chosen")


def _not_taken(name: str, controls: list[Control], value: Value) -> str:
    """Why a value cannot be sent."""
    if isinstance(value, File):
        return f"field {name!r} takes no files, or no more files"
    if all(control.kind == "file" for control in controls):
        return f"field {name!r} takes files: a name and its bytes"
    choices = [choice for control in controls for choice in _choices(control)]
    if not choices:
        return f"too many values for field {name!r}"
    return f"field {name!r} has no choice {value!r:.60}; it has {listed(choices)}"


def _choices(control: Control) -> list[str]:
    if control.kind == "select":
        return [option.value for option in options_of(control)]
    return [value_of(control)] if control.kind in BOXES else []


def listed(names: Iterable[str]) -> str:
    """Names for an error message: each once, and not too many."""
    known = list(dict.fromkeys(names))
    shown = ", ".join(f"{name!r:.60}" for name in known[:MAX_SHOWN])
    return f"{shown}, ..." if len(known) > MAX_SHOWN else shown or "none"
