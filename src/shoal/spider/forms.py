"""Forms: what a browser would send if somebody filled one in and pressed a button.

This follows the HTML standard: form data set, attributes of forms and buttons, encodings. Scripts
of the page are not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from selectolax.lexbor import LexborNode
from w3lib.encoding import resolve_encoding

from shoal.core.bodies import (
    MAX_BODY_BYTES,
    MULTIPART,
    PLAIN,
    URLENCODED,
    Body,
    Field,
    File,
    Sent,
    as_sent,
    multipart,
    plain_text,
    too_long,
    urlencoded,
)
from shoal.core.urls import MAX_URL_LENGTH
from shoal.spider.choices import NEVER_SENT, PRESSED, Value, defaults, fill, listed, value_of
from shoal.spider.controls import Control, attributes_of, controls_of

_NAMED_DIRECTION = frozenset(
    {"email", "hidden", "password", "search", "submit", "tel", "text", "textarea", "url"}
)
_NEAR = 512
"""How many elements around another one to look at: browsers do not nest them more deeply."""
_WINDOWS = re.compile(r"cp(125\d|874)")
_ISO = re.compile(r"iso8859-(\d+)")


class Submission(msgspec.Struct):
    """What a form sends, and where."""

    action: str
    """The address, as the page has it. Empty: the address of the page."""
    query: str | None
    """Replaces the query of the action. None: it stays as it is."""
    body: Body | None

    def sent(self, headers: Mapping[str, str] | None) -> Sent:
        """The request, in the form that a task has. Raises ValueError if the body is too long."""
        if self.body is None:
            return Sent("GET", {**headers} if headers else {}, None, False)
        return as_sent("POST", headers, self.body)

    def address(self, url: str) -> str:
        """The address to send it to, if the action leads to `url`. Raises ValueError."""
        if self.query is not None:
            url = f"{url.partition('?')[0]}?{self.query}"
        if len(url) > MAX_URL_LENGTH:
            raise ValueError(f"the form makes a URL of more than {MAX_URL_LENGTH:,} characters")
        return url


class Form:
    """A form of a page. Its errors are ValueErrors with one line."""

    def __init__(self, root: LexborNode, node: LexborNode, charset: str) -> None:
        """`charset` is that of the page. Raises Unparsable if the page has too many fields."""
        self._attributes = attributes_of(node)
        self._controls = controls_of(root, node)
        self._charset = _charset(self._attributes.get("accept-charset"), charset)

    def submission(
        self, values: Mapping[str, Any], pressed: Sequence[LexborNode] | None
    ) -> Submission:
        """What the form sends with these values.

        The first of the elements in `pressed` that is a button of the form is pressed. None: the
        button that Enter would press.
        """
        button = self._default_button() if pressed is None else self._button(pressed)
        fields = list(self._fields(values, button))
        size = sum(len(name) + _size(value) for name, value in fields)
        if size > MAX_BODY_BYTES:  # Before it is copied to encode it.
            raise ValueError(too_long(size))
        attribute = self._attribute_for(button)
        action, method = attribute("action"), attribute("method").lower()
        if method == "dialog":
            raise ValueError("the form is for a dialog of its page: it is not sent")
        if method != "post":
            return Submission(action, urlencoded(fields, self._charset), None)
        body = _body(fields, attribute("enctype").lower(), self._charset)
        return Submission(action, None, body)

    def _attribute_for(self, button: Control | None) -> Callable[[str], str]:
        """Returns attributes of the form, or those of the button that override them."""

        def attribute(name: str) -> str:
            if button is not None and f"form{name}" in button.attributes:
                return button.attributes[f"form{name}"]
            return self._attributes.get(name, "")

        return attribute

    def _default_button(self) -> Control | None:
        buttons = (control for control in self._controls if control.kind in PRESSED)
        return next((button for button in buttons if not button.is_disabled), None)

    def _button(self, pressed: Iterable[LexborNode]) -> Control:
        buttons = {each.id: each for each in self._controls if each.kind in PRESSED}
        for node in pressed:
            if node.mem_id in buttons:
                return buttons[node.mem_id]
        raise ValueError(f"no such button; the form has {listed(map(_shown, buttons.values()))}")

    def _fields(self, values: Mapping[str, Any], button: Control | None) -> Iterator[Field]:
        """The form data set. A disabled control is only in it if it was given a value."""
        filled = self._filled(values)
        sent = defaults(self._controls) | filled
        for control in self._controls:
            if control is button:
                yield from _of_button(control, sent_at_all=control.id not in filled)
            elif control.name and (control.id in filled or not control.is_disabled):
                yield from self._of_control(control, sent[control.id])

    def _filled(self, values: Mapping[str, Any]) -> dict[int, list[Value]]:
        named: dict[str, list[Control]] = {}
        for control in self._controls:
            if control.name and control.kind not in NEVER_SENT:
                named.setdefault(control.name, []).append(control)
        filled: dict[int, list[Value]] = {}
        for name, value in values.items():
            if name not in named:
                raise ValueError(f"no field {name!r:.60}; the form has {listed(named)}")
            fillable = [each for each in named[name] if each.kind not in PRESSED]
            if not fillable and value is not None:
                raise ValueError(f"{name!r:.60} is a button, not a field: name it with button=")
            filled |= fill(name, fillable if value is not None else named[name], value)
        return filled

    def _of_control(self, control: Control, values: Iterable[Value]) -> Iterator[Field]:
        name = control.name
        for value in values:
            if control.kind == "hidden" and name.lower() == "_charset_":
                yield name, _label(self._charset)
            else:
                yield name, value
        direction = control.attributes.get("dirname")
        if direction and control.kind in _NAMED_DIRECTION:
            yield direction, _direction(control.node)


def _of_button(button: Control, *, sent_at_all: bool) -> Iterator[Field]:
    """The fields of the button that was pressed. An image sends the position of the click."""
    if not sent_at_all:
        return
    if button.kind == "image":
        prefix = f"{button.name}." if button.name else ""
        yield f"{prefix}x", "0"
        yield f"{prefix}y", "0"
    elif button.name:
        yield button.name, value_of(button)


def _body(fields: Sequence[Field], enctype: str, charset: str) -> Body:
    if enctype == MULTIPART:
        return multipart(fields, charset)
    if enctype == PLAIN:
        return plain_text(fields, charset)
    return Body(urlencoded(fields, charset).encode(), URLENCODED)


def _size(value: str | File) -> int:
    return len(value) if isinstance(value, str) else len(value.content)


def _shown(button: Control) -> str:
    """A word for a button."""
    return button.name or button.attributes.get("id") or button.attributes.get("value") or "unnamed"


def _charset(accepted: str | None, of_page: str) -> str:
    """The charset to send a form in: the first that it accepts, else that of the page."""
    charset: str | None = of_page
    if accepted is not None:
        known = map(_codec, accepted.split())
        charset = next((codec for codec in known if codec), "utf-8")
    # UTF-16 and the like are for reading only.
    return charset if charset and not charset.startswith(("utf-16", "utf-32", "utf-7")) else "utf-8"


def _codec(label: str) -> str | None:
    try:
        codec = resolve_encoding(label)
        return codec if codec and "x".encode(codec) else None
    except (LookupError, ValueError):  # base64 and the like: codecs, but not of text
        return None


def _label(charset: str) -> str:
    """HTML's name for a charset of Python."""
    if windows := _WINDOWS.fullmatch(charset):
        return f"windows-{windows[1]}"
    if iso := _ISO.fullmatch(charset):
        return f"ISO-8859-{iso[1]}"
    return charset.upper()


def _direction(node: LexborNode) -> str:
    """The direction of an element's text, according to the attributes around it."""
    at: LexborNode | None = node
    for _ in range(_NEAR):
        named = "" if at is None else (at.attributes.get("dir") or "").lower()
        if at is None or named in ("ltr", "rtl"):
            return named or "ltr"
        at = at.parent
    return "ltr"
