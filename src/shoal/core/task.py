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

DEFAULT_HANDLER = "parse"
MAX_PRIORITY = 2**31 - 1
MAX_COUNT = 2**31 - 1
MAX_CHAIN_LENGTH = 200
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
    session: str | None = None
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
    dont_filter: bool = False
    """Fetch it even if this address was seen before."""

    @property
    def pool(self) -> str | None:
        """The pool by whose exits it leaves. None: it leaves directly."""
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


def unsupported(task: Task) -> str | None:
    """What a task relies on that no worker heeds yet. None: it may be fetched."""
    return None if task.session is None else "session is not supported yet"


_MORE = re.compile(rb'"(?:method|body|dont_filter|headers|meta)":')
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Task)

encode = _encoder.encode
"""Task to JSON bytes."""


def decode(wire: bytes) -> Task:
    """JSON bytes to Task. Raises msgspec.DecodeError or UnicodeDecodeError on anything else."""
    try:
        return _decoder.decode(wire)
    except RecursionError:
        raise msgspec.DecodeError("nested too deep") from None


def may_be_more(wire: bytes) -> bool:
    """Whether a task, as JSON or as part of something, may be more than the GET of its address. If
    not, its address alone says which task it is."""
    return _MORE.search(wire) is not None
