"""Builds the events of a crawl as JSON: items as `shoal export` writes them, dead tasks, the end.
Pure.

Each event has `_type`, `_crawl`, and an `_id`, by which consumers recognise duplicates.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from shoal.core.counters import COUNTERS
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.export.rows import line_of, own_fields
from shoal.frontier.values import Stats
from shoal.publish.port import Channel
from shoal.results.fields import iso

ID_BYTES = 200
"""The maximum length of an id. RabbitMQ allows 255 bytes."""
REASON_KEPT = 1_000
DETAIL_KEPT = 8_000
"""How many characters of the reason for a task's death and of the traceback are published."""


class Event(msgspec.Struct, frozen=True):
    """An event to publish."""

    channel: Channel
    id: str
    body: bytes


def of_item(crawl: str, item: StoredItem) -> Event:
    """The event for an item that was scraped."""
    identity = identity_of(crawl, item.kind, item.key, item.scraped_at)
    return _event(Channel.ITEMS, "item", crawl, identity, line_of(item, own_fields(item)))


def of_death(
    crawl: str, task: Task, fingerprint: bytes, reason: str, detail: str, at: float
) -> Event:
    """The event for a dead task. It leaves out the task's headers, body, cookies and meta, which
    may be secret."""
    told: dict[str, Any] = {
        "url": task.url,
        "method": task.method,
        "job_type": task.job_type,
        "fingerprint": fingerprint.hex(),
        "parent": task.parent,
        "depth": task.depth,
        "retry_count": task.retry_count,
        "reason": reason[:REASON_KEPT],
        "detail": detail[-DETAIL_KEPT:],  # The end of a traceback says most.
        "at": iso(at),
    }
    identity = identity_of(crawl, "dead", fingerprint.hex(), at)
    return _event(Channel.DEAD, "dead", crawl, identity, told)


def of_end(stats: Stats) -> Event:
    """The event for the end of a crawl, with its counters."""
    at = stats.finished_at or stats.started_at or stats.created_at
    told: dict[str, Any] = {
        "state": stats.state,
        "started_at": stats.started_at and iso(stats.started_at),
        "finished_at": iso(at),
        "counters": {name: getattr(stats, name) for name in COUNTERS},
    }
    identity = identity_of(stats.crawl, stats.state, "", at)
    return _event(Channel.FINISHED, "finished", stats.crawl, identity, told)


def identity_of(crawl: str, kind: str, key: str, at: float) -> str:
    """The id of a message: crawl, kind, key and time. A digest replaces crawl, kind and key if the
    id would be too long, or is not printable ASCII and so not fit for headers."""
    text = f"{crawl}:{kind}:{key}:{at:.6f}"
    if text.isascii() and text.isprintable() and len(text) <= ID_BYTES:
        return text
    encoded = text.encode("utf-8", "backslashreplace")
    return f"{hashlib.blake2b(encoded, digest_size=16).hexdigest()}:{at:.6f}"


def _event(channel: Channel, kind: str, crawl: str, identity: str, told: dict[str, Any]) -> Event:
    body = told | {"_type": kind, "_crawl": crawl, "_id": identity}
    try:
        encoded = msgspec.json.encode(body)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode({name: _valid(value) for name, value in body.items()})
    return Event(channel, identity, encoded)


def _valid(value: Any) -> Any:
    """Escape lone surrogates, which no encoding can represent, in the same way as they are
    stored."""
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str else value
