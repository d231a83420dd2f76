"""What is told of a crawl, as JSON: items as `shoal export` writes them, deaths, the end. Pure.

Each has `_type`, `_crawl`, and `_id`, by which those who get it twice know it.
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
"""RabbitMQ takes 255."""
REASON_KEPT = 1_000
DETAIL_KEPT = 8_000
"""Characters that are told of why a task died, and of the traceback."""


class Event(msgspec.Struct, frozen=True):
    """Something that others are told."""

    channel: Channel
    id: str
    body: bytes


def of_item(crawl: str, item: StoredItem) -> Event:
    """A reading of an item."""
    identity = identity_of(crawl, item.kind, item.key, item.scraped_at)
    return _event(Channel.ITEMS, "item", crawl, identity, line_of(item, own_fields(item)))


def of_death(
    crawl: str, task: Task, fingerprint: bytes, reason: str, detail: str, at: float
) -> Event:
    """A dead task. What it was sent with (headers, body, cookies, meta) may be secret, and stays
    in the frontier."""
    told: dict[str, Any] = {
        "url": task.url,
        "method": task.method,
        "job_type": task.job_type,
        "fingerprint": fingerprint.hex(),
        "parent": task.parent,
        "depth": task.depth,
        "retry_count": task.retry_count,
        "reason": reason[:REASON_KEPT],
        "detail": detail[-DETAIL_KEPT:],  # Of a traceback, the end says most.
        "at": iso(at),
    }
    identity = identity_of(crawl, "dead", fingerprint.hex(), at)
    return _event(Channel.DEAD, "dead", crawl, identity, told)


def of_end(stats: Stats) -> Event:
    """The end of a crawl, with its counters."""
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
    """The id of a message: crawl, kind, key and time; a digest for what is too long, or would
    disturb somebody's headers."""
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
    """Lone surrogates, which no encoding can hold, written out: as they are stored."""
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str else value
