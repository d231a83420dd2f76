"""What became of one URL on Redis: it is looked for wherever a task can be.

Done tasks leave nothing behind but their fingerprint among those that were seen, so what was seen
and is nowhere else is done.
"""

from __future__ import annotations

from typing import Any

from shoal.frontier.redis.link import RedisLink
from shoal.frontier.redis.packing import unpack
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.stats import priorities_of
from shoal.frontier.values import BLOCKED_REASON, CrawlState, Entry, Record, TaskState

CHUNK = 1000
QUEUES_AT_ONCE = 100
LOOKS = 3
"""A task may leave the queue while we walk it, and come back behind us. What was seen must be
somewhere, or done."""

CANCELLED = "cancelled"

_STATES = {
    b"dead": TaskState.DEAD,
    b"blocked": TaskState.WAITING,
    b"leased": TaskState.LEASED,
    b"delayed": TaskState.DELAYED,
    b"suspect": TaskState.WAITING,
}


async def find(link: RedisLink, shard: Shard, entry: Entry) -> Record | None:
    """Where the task is. If it waits, that costs a walk through its host's queue."""
    for _ in range(LOOKS):
        seen, state, where, *rest = await shard.run("find", entry.fingerprint)
        is_cancelled = CrawlState(state.decode()) is CrawlState.CANCELLED
        record = _found(where, rest, entry) if where else await _waiting(link, shard, entry)
        if record is not None:
            return _as_cancelled(record) if is_cancelled else record
        if not seen:
            return None
    return Record(fingerprint=entry.fingerprint, task=entry.task, state=TaskState.DONE)


def dead_record(values: list[Any]) -> Record:
    """A dead task, as the scripts return it."""
    site, priority, packed, reason, detail = values
    fingerprint, task, losses = unpack(packed, site.decode(), int(priority))
    return Record(
        fingerprint=fingerprint,
        task=task,
        state=TaskState.DEAD,
        losses=losses,
        reason=reason.decode(),
        detail=detail.decode(),
    )


def _found(where: bytes, rest: list[Any], entry: Entry) -> Record:
    due, *values = rest
    if where == b"dropped":
        return _dropped(entry, values[0].decode())
    if where == b"dead":
        return dead_record(values)
    site, priority, packed, *more = values
    fingerprint, task, losses = unpack(packed, site.decode(), int(priority))
    return Record(
        fingerprint=fingerprint,
        task=task,
        state=_STATES[where],
        losses=losses,
        reason=BLOCKED_REASON.format(task.chain) if where == b"blocked" else "",
        due=float(due) / 1e6 or None,
        worker=more[0].decode() if where == b"leased" else "",
    )


async def _waiting(link: RedisLink, shard: Shard, entry: Entry) -> Record | None:
    prefix, site = await shard.prefix(), entry.task.site
    host = await link.command("HGET", f"{prefix}hosts", site)
    queues = await priorities_of(link, prefix, site, host) if host else []
    for start in range(0, len(queues), QUEUES_AT_ONCE):
        some = queues[start : start + QUEUES_AT_ONCE]
        keys = [f"{prefix}q:{priority}:{site}" for priority in some]
        heads = await link.together(*(("LRANGE", key, 0, CHUNK // len(keys)) for key in keys))
        for priority, key, head in zip(some, keys, heads, strict=True):
            packed = await _in_queue(link, key, head, entry.fingerprint)
            if packed is not None:
                _, task, losses = unpack(packed, site, priority)
                state = TaskState.WAITING
                return Record(fingerprint=packed[:8], task=task, state=state, losses=losses)
    return None


async def _in_queue(link: RedisLink, key: str, chunk: Any, fingerprint: bytes) -> bytes | None:
    """The entry of a fingerprint in a queue, of which the first chunk was asked for."""
    first = 0
    if isinstance(chunk, Exception):
        chunk = await link.command("LRANGE", key, 0, CHUNK - 1)
    while chunk:
        for packed in chunk:
            if packed[:8] == fingerprint:
                return bytes(packed)
        first += len(chunk)
        chunk = await link.command("LRANGE", key, first, first + CHUNK - 1)
    return None


def _dropped(entry: Entry, reason: str) -> Record:
    state = TaskState.DROPPED
    return Record(fingerprint=entry.fingerprint, task=entry.task, state=state, reason=reason)


def _as_cancelled(record: Record) -> Record:
    """Queues and leases of a cancelled crawl stay where they were, and count as dropped."""
    if record.state in (TaskState.DEAD, TaskState.DROPPED):
        return record
    return _dropped(Entry(record.fingerprint, record.task), CANCELLED)
