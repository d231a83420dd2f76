"""A task: one URL to fetch. This is also what travels on every wire, as JSON.

Any language can write one: only `url` is required, defaults are not sent.
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
"""The name that stands for no pool, where a crawl has one for all its tasks."""


class Task(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One URL to fetch, and all that is needed to fetch and read it."""

    url: str
    """The address to request, as the page spelled it."""
    task_id: str = ""
    """A UUID. Where the sender leaves it out, it follows from the request: see `task_id`."""
    crawl: str = ""
    """The crawl it belongs to. Implied by the queue it is in, so usually not sent."""
    job_type: str = DEFAULT_HANDLER
    """The name of the spider's handler that reads the page."""
    method: str = "GET"
    headers: dict[str, str] = {}
    body: str | None = None
    body_is_base64: bool = False
    """Whether `body` stands for bytes that are no text, such as those of a picture."""
    site: str = ""
    """The host that is scheduled and throttled: `shop.example` or `shop.example:8080`."""
    depth: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0
    """Links followed since a seed."""
    priority: Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Higher goes first, within its host."""
    retry_count: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0
    """Failed tries so far. The frontier keeps it."""
    max_retries: Annotated[int, Meta(ge=0, le=MAX_COUNT)] | None = None
    """Overrides the crawl's own limit."""
    proxy_pool: str | None = None
    """The pool of exits by which its request leaves. `direct`: by none, whatever the crawl says."""
    session: Annotated[str, Meta(min_length=1, max_length=MAX_SESSION_LENGTH)] | None = None
    """The accounts that its request may be sent with: `shop`, any of that group; `shop#alice`, this
    one. `none`: with none, whatever the crawl says."""
    on_failure: str = ""
    """The name of the spider's method that is told if it dies, or is dropped. Empty: the one for
    all tasks, if the spider has any."""
    not_before: datetime | None = None
    """When it may be sent at the earliest; UTC if it has no time zone. Whoever is handed it before
    then puts it off."""
    chain: Annotated[str, Meta(min_length=1, max_length=MAX_CHAIN_LENGTH)] | None = None
    """Tasks of one chain are done one after the other, in the order in which they were added."""
    meta: dict[str, Any] = {}
    """The spider's own notes, handed back as `page.meta`. JSON values only."""
    parent: str | None = None
    """The fingerprint (hex) of the task whose page led here."""
    created_at: datetime | None = None
    redirects: list[str] = []
    """The addresses that redirected here, oldest first; with the method before it, if no GET."""
    cookies: Jar | None = None
    """What a redirect outside of a chain brings along: see `Rules.cookies`. Never shown."""
    cookies_since: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0
    """How many of the first `redirects` were asked for with other cookies than this is."""
    accept: Annotated[tuple[Status, ...], Meta(max_length=MAX_ACCEPTED)] = ()
    """Statuses, beside 2xx, whose answers its handler reads."""
    dont_filter: bool = False
    """Fetch it even if this address was seen before."""
    retry: bool = False
    """Of a seed: if it is dead, try it again. That is done when it is added, and is not kept."""

    @property
    def pool(self) -> str | None:
        """The pool of exits, or the group of accounts, that it waits for. None: for none."""
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
        """The task to send a form, JSON, files or other bytes. With a form they are urlencoded,
        with files multipart; `fields` are those of a task. Raises ValueError if that cannot be."""
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=files)
        return cls(url=url, **sent._asdict(), **fields)


class LaterTask(Task):
    """A task with fields that only a later version knows. Nobody here looks into them: they stay
    with it wherever it goes on, and one of them may be a secret, so they are never shown."""

    unknown: dict[str, Any] = {}

    def __repr__(self) -> str:
        return repr(without_unknown(self))


def without_unknown(task: Task) -> Task:
    """The task as this version knows it."""
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
    """Which number of a task no other worker could read; None if all is well. What comes over a
    wire was checked there; what is made in Python was not."""
    if (  # Almost all are like this.
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
    """The body that is sent, empty without one. Raises ValueError for what is no base64, or has no
    bytes."""
    body = task.body or ""
    if not task.body_is_base64:
        return body.encode()
    try:
        return b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the body is not base64") from None


def bad_body(task: Task) -> str | None:
    """Why the body of a task is none that may be sent; None if all is well."""
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
    """Task to JSON bytes."""
    return _encode(task) if type(task) is Task else _encode(_all_fields(task))


def _all_fields(task: Task) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(task)
    fields.update(fields.pop("unknown", {}))
    return fields


def decode(wire: bytes) -> Task:
    """JSON bytes to Task: of one that is stored, whose fields may be those of a later version.
    Raises msgspec.DecodeError or UnicodeDecodeError on anything else."""
    try:
        return _decode(wire)
    except msgspec.ValidationError:
        return _decode_later(wire)
    except RecursionError:
        raise _too_deep() from None


def decode_seed(wire: bytes) -> Task:
    """The same of one that somebody has written just now: a field that nobody knows is a mistake,
    and refused."""
    try:
        return _decode(wire)
    except RecursionError:
        raise _too_deep() from None


def flaw_of(task: Task) -> str | None:
    """Why a task could not travel to another worker; None if it can."""
    if flaw := bad_body(task):
        return flaw
    try:
        decode(encode(task))
    except Exception as error:  # What is in `meta` may raise anything.
        return str(error)
    return None


def _decode_later(wire: bytes) -> Task:
    """Almost none are like this, so it may take its time."""
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
    """Whether a task, as JSON or as part of something, may be more than the GET of its address. If
    not, its address alone says which task it is."""
    return _MORE.search(wire) is not None
