"""Pickled requests of scrapy-redis: read safely, and made into entries of a frontier."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec
from scrapy import Request

from shoal.core import task as wire
from shoal.core.urls import FINGERPRINT_BYTES, digest
from shoal.errors import ShoalError
from shoal.frontier.values import Entry
from shoal.scrapy.migration import unpickling
from shoal.scrapy.wire.fingerprint import Fingerprinter, short_fingerprint
from shoal.scrapy.wire.mapping import UTF_8, extras_of, task_of

_DEFAULTS: dict[str, Any] = {
    "callback": None,
    "errback": None,
    "method": "GET",
    "headers": {},
    "body": b"",
    "cookies": {},
    "meta": {},
    "encoding": UTF_8,
    "priority": 0,
    "dont_filter": False,
    "flags": [],
    "cb_kwargs": {},
}


class NotARequest(ShoalError):
    """An entry of the queue that is not a request, or one that cannot be queued."""


class Stored(NamedTuple):
    """An entry of a queue of scrapy-redis."""

    raw: bytes
    place: int
    """Distinguishes it from others with the same bytes."""


def values_of(stored: Stored) -> dict[str, Any]:
    """Return the dict of a pickled request, as Request.to_dict gave it. Raises NotARequest."""
    try:
        found = unpickling.load(stored.raw)
    except unpickling.BadPickle as error:
        raise NotARequest(str(error)) from None
    if not isinstance(found, dict) or not isinstance(found.get("url"), str):
        raise NotARequest("a pickle, but not of a request")
    if "_encoding" in found:  # Before Scrapy 2.6.
        found["encoding"] = found.pop("_encoding")
    return _DEFAULTS | {name: value for name, value in found.items() if value is not None}


def request_of(values: dict[str, Any]) -> Request:
    """Return as much of a request as its fingerprint is made of. Raises NotARequest."""
    names = ("url", "method", "body", "headers", "encoding")
    try:
        return Request(**{name: values[name] for name in names}, meta=_url_meta(values["meta"]))
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise NotARequest(f"not a request: {error}") from None


def _url_meta(meta: dict[str, Any]) -> dict[str, Any]:
    return {"verbatim_url": True} if meta.get("verbatim_url") else {}


def entry_of(stored: Stored, fingerprinter: Fingerprinter, *, unique: bool = False) -> Entry:
    """Return the entry for a request. Raises NotARequest.

    Requests with `dont_filter`, and all if `unique`, get an identity of their own. It is derived
    from what is stored, so that moving a request twice does no harm.
    """
    values = values_of(stored)
    request = request_of(values)
    try:
        task = wire.decode(wire.encode(task_of(values, [])))
        extras_of(task)
    except (ShoalError, msgspec.MsgspecError) as error:
        raise NotARequest(f"{request}: {error}") from None
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise NotARequest(f"not a request: {error}") from None
    if not task.dont_filter and not unique:
        return Entry(short_fingerprint(fingerprinter.fingerprint(request)), task)
    task_id = hashlib.blake2b(stored.raw + b"%d" % stored.place, digest_size=16).hexdigest()
    if task.dont_filter:
        task.task_id = task_id
    return Entry(digest(f"task {task_id}")[:FINGERPRINT_BYTES], task)
