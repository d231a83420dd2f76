"""A task: one URL to fetch. As JSON, this is also the format of tasks on every wire.

Any language can write one: only `url` is required, and defaults are not sent.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shoal.core import bodies
from shoal.core.bodies import Files, FormFields
from shoal.core.cookies import Jar
from shoal.core.identities import NO_SESSION, pool_of_session

DEFAULT_HANDLER = "parse"
MAX_PRIORITY = 2**31 - 1
MAX_COUNT = 2**31 - 1
MAX_CHAIN_LENGTH = 200
MAX_SESSION_LENGTH = 100
MAX_ACCEPTED = 100
Status = Annotated[int, Meta(ge=300, le=599)]
DIRECT = "direct"
"""The pool name that means no pool, in crawls that have one for all tasks."""


class Task(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One URL to fetch, and everything needed to fetch and read it."""

    url: str
    """The address to request, as the page spelled it."""
    task_id: str = ""
    """A UUID. With `dont_filter` it tells tasks apart, and is generated if it is missing."""
    crawl: str = ""
    """The crawl that the task belongs to. Usually not sent, as the queue implies it."""
    job_type: str = DEFAULT_HANDLER
    """The name of the spider's handler that reads the page."""
    method: str = "GET"
    headers: dict[str, str] = {}
    body: str | None = None
    body_is_base64: bool = False
    """Whether `body` is base64 of bytes that are no text, such as those of a picture."""
    site: str = ""
    """The host by which the task is scheduled and throttled: `shop.example` or `shop.example:8080`.
    """
    depth: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0
    """Links followed since the seed."""
    priority: Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Tasks of higher priority go first within their host."""
    retry_count: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0
    """Failed tries so far. Kept by the frontier."""
    max_retries: Annotated[int, Meta(ge=0, le=MAX_COUNT)] | None = None
    """Overrides the crawl's own limit."""
    proxy_pool: str | None = None
    """The pool of exits that the request leaves through. `direct`: none, whatever the crawl
    says."""
    session: Annotated[str, Meta(min_length=1, max_length=MAX_SESSION_LENGTH)] | None = None
    """The accounts with which the request may be sent: `shop` for any account of that group,
    `shop#alice` for this one, `none` for none, whatever the crawl says."""
    on_failure: str = ""
    """The name of the spider's method that is called if the task dies or is dropped. Empty: the
    method for all tasks, if the spider has one."""
    not_before: datetime | None = None
    """The earliest time to send it, in UTC if it has no zone. A worker that gets it early puts it
    off."""
    chain: Annotated[str, Meta(min_length=1, max_length=MAX_CHAIN_LENGTH)] | None = None
    """Tasks of one chain are done one after the other, in the order in which they were added."""
    meta: dict[str, Any] = {}
    """The spider's own notes, handed back as `page.meta`. JSON values only."""
    parent: str | None = None
    """The fingerprint (hex) of the task whose page led here."""
    created_at: datetime | None = None
    redirects: list[str] = []
    """The addresses that redirected here, oldest first; with the method in front, if not GET."""
    cookies: Jar | None = None
    """Cookies that a redirect outside of a chain brings along: see `Rules.cookies`. Never shown."""
    cookies_since: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0
    """How many of the first `redirects` were requested with other cookies than those in `cookies`.
    """
    accept: Annotated[tuple[Status, ...], Meta(max_length=MAX_ACCEPTED)] = ()
    """Statuses other than 2xx whose responses the handler reads."""
    dont_filter: bool = False
    """Fetch it even if this address was seen before."""
    retry: bool = False
    """For seeds: if the task is dead, try it again. Applied when the seed is added; not stored."""

    @property
    def pool(self) -> str | None:
        """The pool of exits, or the group of accounts, that the task waits for, if any."""
        if self.session is not None and self.session != NO_SESSION:
            return pool_of_session(self.session)
        return None if self.proxy_pool == DIRECT else self.proxy_pool

    @classmethod
    def post(
        cls,
        url: str,
        *,
        form: FormFields | None = None,
        json: Any = None,
        files: Files | None = None,
        body: str | bytes | None = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Task:
        """Make a task that sends a form, JSON, files or other bytes.

        Forms are urlencoded; with files they are multipart. `fields` are further fields of the
        task. Raises ValueError if these cannot be sent, or not together.
        """
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=files)
        return cls(url=url, **sent._asdict(), **fields)


class LaterTask(Task):
    """A task with fields that only a later version of Shoal knows.

    This version does not interpret them: they stay with the task wherever it goes on. They are
    never shown, as one of them may be a secret.
    """

    unknown: dict[str, Any] = {}

    def __repr__(self) -> str:
        return repr(without_unknown(self))


def without_unknown(task: Task) -> Task:
    """The task with only the fields that this version knows."""
    if type(task) is Task:
        return task
    return Task(**{name: getattr(task, name) for name in Task.__struct_fields__})


_LIMITS = {
    "priority": (-MAX_PRIORITY, MAX_PRIORITY),
    "depth": (0, MAX_COUNT),
    "retry_count": (0, MAX_COUNT),
    "max_retries": (0, MAX_COUNT),
}


def bad_number(task: Task) -> str | None:
    """Which number of a task no other worker could read. None if all are valid.

    Tasks from a wire were checked when they were decoded; tasks made in Python were not.
    """
    if (  # A quick check that almost all tasks pass.
        task.max_retries is None
        and type(task.priority) is type(task.depth) is type(task.retry_count) is int
        and -MAX_PRIORITY <= task.priority <= MAX_PRIORITY
        and 0 <= task.depth <= MAX_COUNT
        and 0 <= task.retry_count <= MAX_COUNT
    ):
        return None
    for name, (least, most) in _LIMITS.items():
        value = getattr(task, name)
        is_left_out = name == "max_retries" and value is None
        if not is_left_out and not (type(value) is int and least <= value <= most):
            return f"{name} must be a whole number from {least} to {most}, not {value!r}"
    return None


def raw_body(task: Task) -> bytes:
    """The body that is sent. Raises ValueError if it is invalid base64, or cannot be encoded."""
    body = task.body or ""
    if not task.body_is_base64:
        return body.encode()
    try:
        return b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the body is not base64") from None


def bad_body(task: Task) -> str | None:
    """Why the body of a task may not be sent. None if it may."""
    if not isinstance(task.body, str | None):
        return f"the body must be text, not {type(task.body).__name__}: Task.post() takes bytes"
    try:
        size = len(raw_body(task))
    except ValueError as error:
        return str(error)
    return bodies.too_long(size) if size > bodies.MAX_BODY_BYTES else None


_MORE = re.compile(rb'"(?:method|body|dont_filter|headers|meta|session)":')
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode
_KNOWN = frozenset(Task.__struct_fields__)
_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


def encode(task: Task) -> bytes:
    """Encode a task as JSON."""
    return _encode(task) if type(task) is Task else _encode(_all_fields(task))


def _all_fields(task: Task) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(task)
    fields.update(fields.pop("unknown", {}))
    return fields


def decode(wire: bytes) -> Task:
    """Decode a stored task from JSON. Its fields may be those of a later version.

    Raises msgspec.DecodeError or UnicodeDecodeError on anything else.
    """
    try:
        return _decode(wire)
    except msgspec.ValidationError:
        return _decode_later(wire)
    except RecursionError:
        raise _too_deep() from None


def decode_seed(wire: bytes) -> Task:
    """Decode a task that a user has just written. An unknown field is a mistake, and rejected.

    Raises msgspec.DecodeError or UnicodeDecodeError.
    """
    try:
        return _decode(wire)
    except RecursionError:
        raise _too_deep() from None


def flaw_of(task: Task) -> str | None:
    """Why a task could not travel to another worker. None if it can."""
    if flaw := bad_body(task):
        return flaw
    try:
        decode(encode(task))
    except Exception as error:  # The values in `meta` may raise anything.
        return _bad_meta(task) or bad_number(task) or str(error)
    return None


def _bad_meta(task: Task) -> str | None:
    try:
        _encode(task.meta)
    except Exception as error:
        return f"meta may hold only JSON values (text, numbers, lists, dicts): {error}"
    return None


def _decode_later(wire: bytes) -> Task:
    """Decode a task with unknown fields. Rare, so it need not be fast."""
    try:
        fields = _decode_fields(wire)
        unknown = {name: fields.pop(name) for name in fields.keys() - _KNOWN}
        known = _decode(_encode(fields))
    except RecursionError:
        raise _too_deep() from None
    return LaterTask(**{name: getattr(known, name) for name in fields}, unknown=unknown)


def _too_deep() -> msgspec.DecodeError:
    return msgspec.DecodeError("nested too deep")


def may_be_more(wire: bytes) -> bool:
    """Whether a task, given as JSON or as part of some text, may be more than a GET of its address.
    If not, the address alone identifies it."""
    return _MORE.search(wire) is not None
