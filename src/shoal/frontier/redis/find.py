"""Finds out what became of one URL on Redis, by looking wherever a task can be.

Done tasks leave only their fingerprint, among those that were seen. So a fingerprint that was seen,
but is found nowhere else, is that of a done task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from shoal.core.failures import kind_named
from shoal.core.task import may_be_more
from shoal.drivers.redis.link import RedisLink
from shoal.frontier.facts import DROPPED_BY_CANCEL, HELD_BACK_REASON
from shoal.frontier.redis.packing import unpack
from shoal.frontier.redis.shard import Shard
from shoal.frontier.redis.stats import priorities_of
from shoal.frontier.values import CrawlState, Entry, Record, TaskState

CHUNK = 1000
QUEUES_AT_ONCE = 100
QUEUES = "qt"
"""The letters with which keys of queues begin. Crawls with a carrier keep the last tasks of a queue
apart from the next ones."""
LOOKS = 3
"""How often to look for a task that was seen but not found: it may leave the queue during the walk,
and come back behind it."""

_WALKED = {
    "held": b"leased",
    "delayed": b"delayed",
    "suspects": b"suspect",
    "blocked": b"held back",
    "dead": b"dead",
}
"""The keys of tasks that are in no queue, in the order in which tasks get there, and the names of
these places in find.lua."""

_STATES = {
    b"dead": TaskState.DEAD,
    b"held back": TaskState.WAITING,
    b"leased": TaskState.LEASED,
    b"delayed": TaskState.DELAYED,
    b"suspect": TaskState.WAITING,
}


async def find(link: RedisLink, shard: Shard, entry: Entry) -> Record | None:
    """Find one task. If it waits, this costs a walk through its host's queue. None: it was never
    seen."""
    for _ in range(LOOKS):
        seen, state, where, *rest = await shard.run("find", entry.fingerprint)
        is_cancelled = CrawlState(state.decode()) is CrawlState.CANCELLED
        record = _found(where, rest, entry) if where else await _waiting(link, shard, entry)
        if record is not None:
            return _as_cancelled(record) if is_cancelled else record
        if not seen:
            return None
    return _forgotten(entry, TaskState.DONE)


async def find_others(
    link: RedisLink, shard: Shard, site: str, is_wanted: Callable[[str], bool], limit: int
) -> list[Record]:
    """The tasks of a host whose URL is wanted, other than the plain GET of that URL, and except
    those that are done or dropped. This costs a walk through all of the host's queue, and through
    all tasks that are in no queue."""
    found: dict[bytes, Record] = {}
    is_cancelled = await _is_cancelled(shard)
    async for record in _others(link, shard, site):
        if is_wanted(record.task.url):
            found[record.fingerprint] = _as_cancelled(record) if is_cancelled else record
            if len(found) == limit:
                break
    return list(found.values())


async def _others(link: RedisLink, shard: Shard, site: str) -> AsyncIterator[Record]:
    async for packed, queue, priority in _queued(link, shard, site):
        if may_be_more(packed):
            fingerprint, task, losses = unpack(packed, queue, priority)
            state = TaskState.WAITING
            yield Record(fingerprint=fingerprint, task=task, state=state, losses=losses)
    for where, state_name in _WALKED.items():
        cursor = b"0"
        while True:
            cursor, *chunk = await shard.run("walk", where, cursor, site, CHUNK)
            for rest in chunk:
                if may_be_more(rest[3]):
                    yield _placed(state_name, rest)
            if cursor == b"0":
                break


async def _is_cancelled(shard: Shard) -> bool:
    return CrawlState((await shard.counts())["state"]) is CrawlState.CANCELLED


def dead_record(values: list[Any]) -> Record:
    """Read a dead task from the answer of a script."""
    died, site, priority, packed, reason, detail, *kind = values
    fingerprint, task, losses = unpack(packed, site.decode(), int(priority))
    return Record(
        fingerprint=fingerprint,
        task=task,
        state=TaskState.DEAD,
        losses=losses,
        kind=kind_named(kind[0].decode() if kind else None),
        died_at=float(died) / 1e6,
        reason=reason.decode(),
        detail=detail.decode(),
    )


def _found(where: bytes, rest: list[Any], entry: Entry) -> Record:
    if where == b"dropped":
        return _forgotten(entry, TaskState.DROPPED, rest[1].decode())
    return _placed(where, rest)


def _placed(where: bytes, rest: list[Any]) -> Record:
    if where == b"dead":
        return dead_record(rest)
    due, site, priority, packed, *more = rest
    fingerprint, task, losses = unpack(packed, site.decode(), int(priority))
    return Record(
        fingerprint=fingerprint,
        task=task,
        state=_STATES[where],
        losses=losses,
        reason=HELD_BACK_REASON.format(task.chain) if where == b"held back" else "",
        due=float(due) / 1e6 or None,
        worker=more[0].decode() if where == b"leased" else "",
    )


async def _waiting(link: RedisLink, shard: Shard, entry: Entry) -> Record | None:
    async for packed, queue, priority in _queued(link, shard, entry.task.site):
        if packed[:8] == entry.fingerprint:
            _, task, losses = unpack(packed, queue, priority)
            state = TaskState.WAITING
            return Record(fingerprint=packed[:8], task=task, state=state, losses=losses)
    return None


async def _queued(
    link: RedisLink, shard: Shard, site: str
) -> AsyncIterator[tuple[bytes, str, int]]:
    """The packed tasks that wait in the queues of a host and its lanes, each with the name of its
    queue and its priority."""
    prefix = await shard.prefix()
    pools = await link.command("SMEMBERS", f"{prefix}pools")
    for queue in (site, *(f"{pool.decode()} {site}" for pool in pools)):
        async for packed, priority in _in_line(link, prefix, queue):
            yield packed, queue, priority


async def _in_line(link: RedisLink, prefix: str, queue: str) -> AsyncIterator[tuple[bytes, int]]:
    host = await link.command("HGET", f"{prefix}hosts", queue)
    queues = await priorities_of(link, prefix, queue, host) if host else []
    for start in range(0, len(queues), QUEUES_AT_ONCE):
        some = queues[start : start + QUEUES_AT_ONCE]
        keys = [(p, f"{prefix}{kind}:{p}:{queue}") for p in some for kind in QUEUES]
        heads = await link.together(*(("LRANGE", key, 0, CHUNK // len(keys)) for _, key in keys))
        for (priority, key), head in zip(keys, heads, strict=True):
            async for packed in _in_queue(link, key, head):
                yield packed, priority


async def _in_queue(link: RedisLink, key: str, chunk: Any) -> AsyncIterator[bytes]:
    """The packed tasks in one queue. `chunk` has the first ones, or the error of reading them."""
    first = 0
    if isinstance(chunk, Exception):
        chunk = await link.command("LRANGE", key, 0, CHUNK - 1)
    while chunk:
        for packed in chunk:
            yield packed
        first += len(chunk)
        chunk = await link.command("LRANGE", key, first, first + CHUNK - 1)


def _forgotten(entry: Entry, state: TaskState, reason: str = "") -> Record:
    """A task of which only its end is known."""
    return Record(
        fingerprint=entry.fingerprint,
        task=entry.task,
        state=state,
        is_forgotten=True,
        reason=reason,
    )


def _as_cancelled(record: Record) -> Record:
    """Return a record of a task in a cancelled crawl. Its queues and leases stay where they were,
    but their tasks count as dropped."""
    if record.state in (TaskState.DEAD, TaskState.DROPPED):
        return record
    state, reason = TaskState.DROPPED, DROPPED_BY_CANCEL
    return Record(
        fingerprint=record.fingerprint,
        task=record.task,
        state=state,
        reason=reason,
    )
