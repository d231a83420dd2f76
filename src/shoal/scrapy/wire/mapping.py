"""Maps Scrapy requests to tasks: where each part of a request is in a task.

The parts are spread over the fields of the task, so that `shoal explain` and seeds from other
sources use the same ones: URL, method, headers, body, priority, depth, and the callback's name as
`job_type`. `meta` is the task's own. What only Scrapy knows is under one reserved key of it,
`scrapy`, and only where it differs from the default.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec
from scrapy import Request

from shoal.core import urls
from shoal.core.task import DEFAULT_HANDLER, MAX_COUNT, MAX_PRIORITY, Task, raw_body
from shoal.errors import BadUrl
from shoal.frontier.admission import without_public_port
from shoal.scrapy.wire.cookies import Cookies
from shoal.scrapy.wire.tagged import Unrestorable, from_plain, to_plain

EXTRAS = "scrapy"
"""The reserved key of a task's meta."""

_interned = sys.intern
"""Interns strings: defaults are left out of the JSON only where they are the same object."""

UTF_8 = _interned("utf-8")


class Extras(msgspec.Struct, omit_defaults=True, rename={"cls": "class"}):
    """The parts of a request for which a task has no field. Values of any kind are tagged."""

    cls: str = ""
    callback: str = ""
    """Set where `job_type` alone would mean no callback."""
    errback: str = ""
    cb_kwargs: Any = None
    cookies: Any = None
    flags: Any = None
    encoding: str = UTF_8
    headers: Any = None
    """All headers, if one has several values or is not text."""
    body: Any = None
    """Bytes that are not text, in tasks of earlier versions. Now they are in the task's own
    body."""
    priority: int | None = None
    """A priority outside a task's range."""
    attributes: dict[str, Any] = {}
    """Attributes of subclasses of Request."""
    meta: dict[str, Any] | None = None
    """All of the meta, if its keys are not text or one of them is reserved."""
    session: Cookies = []
    """The cookies in the request's jar."""


_NO_EXTRAS = Extras()


def site_of(url: str) -> str:
    """Return the host that is scheduled; for URLs without one, such as `data:`, the scheme."""
    try:
        site = without_public_port(urls.parse(url).host)
    except BadUrl:
        site = ""
    return site or url.partition(":")[0].lower() + ":"


def task_of(
    values: Mapping[str, Any], session: Cookies, *, parse_is_explicit: bool = False
) -> Task:
    """Return the task for the values that Request.to_dict gives. Raises Unserialisable.

    `parse_is_explicit` means that the callback `parse` differs from no callback.
    """
    meta, depth = to_plain(values["meta"], "meta"), _depth_of(values["meta"])
    body, headers = _wire_body(values["body"]), _text_headers(values["headers"])
    extras = _extras_for(values, session, headers)
    callback, priority = values["callback"], values["priority"]
    if callback == DEFAULT_HANDLER and parse_is_explicit:
        extras.callback = callback
    if EXTRAS in meta or "$dict" in meta:
        extras.meta, meta = meta, {}
    elif depth:
        del meta["depth"]
    if extras != _NO_EXTRAS:
        meta[EXTRAS] = msgspec.to_builtins(extras)
    return Task(
        url=values["url"],
        job_type=callback or DEFAULT_HANDLER,
        method=_interned(values["method"]),
        headers=headers or {},
        body=body[0],
        body_is_base64=body[1],
        site=site_of(values["url"]),
        depth=depth,
        priority=priority if extras.priority is None else _nearest_priority(priority),
        meta=meta,
        dont_filter=bool(values["dont_filter"]),
    )


def _extras_for(
    values: Mapping[str, Any], session: Cookies, headers: dict[str, str] | None
) -> Extras:
    """Return the extras of a request, except for its callback and its meta. `headers` is None if
    they are not text; the extras then hold them."""
    extras = Extras(
        cls=values.get("_class", ""),
        errback=values["errback"] or "",
        encoding=_interned(values["encoding"]),
        session=session,
    )
    for name in ("cb_kwargs", "cookies", "flags"):
        if values[name]:
            setattr(extras, name, to_plain(values[name], name))
    if headers is None:
        extras.headers = to_plain(dict(values["headers"]), "headers")
    if abs(values["priority"]) > MAX_PRIORITY:
        extras.priority = values["priority"]
    if "_class" in values:
        extras.attributes = _own_attributes(values)
    return extras


def _nearest_priority(priority: int) -> int:
    return max(-MAX_PRIORITY, min(priority, MAX_PRIORITY))


def _wire_body(body: bytes) -> tuple[str | None, bool]:
    """Return a body as a task holds it, and whether that is base64. It may be of any size, as in
    Scrapy."""
    try:
        return body.decode() or None, False
    except UnicodeDecodeError:
        return b64encode(body).decode(), True


def _text_headers(headers: Mapping[bytes, list[bytes]]) -> dict[str, str] | None:
    """Return headers as text. None if one does not have exactly one value or is not text."""
    try:
        return {name.decode(): value.decode() for name, (value,) in dict(headers).items()}
    except ValueError:
        return None


def _depth_of(meta: Mapping[str, Any]) -> int:
    depth = meta.get("depth")
    return depth if type(depth) is int and 0 < depth <= MAX_COUNT else 0


def _own_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    known = {*Request.attributes, "_class"}
    own = {name: value for name, value in values.items() if name not in known}
    return {name: to_plain(value, name) for name, value in own.items()}


def extras_of(task: Task) -> Extras:
    """Return the extras of a task that `task_of` made. Raises Unrestorable."""
    if EXTRAS not in task.meta:
        return _NO_EXTRAS
    try:
        return msgspec.convert(task.meta[EXTRAS], Extras)
    except msgspec.ValidationError as error:
        raise Unrestorable(
            f"meta['{EXTRAS}'] of {task.url} is not of our making: {error}"
        ) from None


def meta_of(task: Task, extras: Extras) -> dict[str, Any]:
    """Return the spider's own meta, except for the depth. Raises Unrestorable."""
    if extras.meta is None:
        return {key: from_plain(value) for key, value in task.meta.items() if key != EXTRAS}
    meta = extras.meta
    # A collection of values, not one: it is a tag only where its keys are not text.
    meta = from_plain(meta) if "$dict" in meta else {k: from_plain(meta[k]) for k in meta}
    if not isinstance(meta, dict):
        raise Unrestorable(f"meta of {task.url} is not of our making")
    return meta


def headers_of(task: Task, extras: Extras) -> Any:
    """Return the headers of a task, as Request takes them."""
    if extras.headers is not None:
        return from_plain(extras.headers)
    return {name.encode(): value.encode() for name, value in task.headers.items()}


def body_of(task: Task, extras: Extras) -> Any:
    """Return the body of a task, in bytes. Raises Unrestorable."""
    if extras.body is not None:
        return from_plain(extras.body)
    try:
        return raw_body(task)
    except ValueError as error:
        raise Unrestorable(f"{error}: {task.url}") from None
