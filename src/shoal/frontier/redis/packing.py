"""The packed form of tasks in queues, which are in memory: as few bytes as possible.

An entry is 8 bytes of fingerprint, one byte each for failed tries and lost workers (the Lua scripts
count these in place), the chain if it has one, and the task as MessagePack. The host, the pool and
the priority are those of its queue, and are not repeated. The fields that every followed link has
come first; everything unusual goes to the end, as JSON. New fields of a task belong there, too:
versions that do not know them keep them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from shoal.core import task as wire
from shoal.core.identities import NO_SESSION, is_group, session_of_pool
from shoal.core.policy import MAX_TRIES
from shoal.core.task import Task
from shoal.frontier.values import Entry

_SCHEMES = ("https://", "http://")
_EPOCH = datetime.fromtimestamp(0, UTC)
_PARENT_BYTES = 8

CHAINED = 0xC1
"""This byte after an entry's first ten says that a chain follows: MessagePack never begins so."""
NO_TURN, NEXT = 0, 2**32 - 1
_CHAIN = Struct(">BIH")
"""`CHAINED`, a turn that the scripts assign, and the length of the name: see lua/chains.lua."""


class _Packed(msgspec.Struct, array_like=True):
    """The MessagePack part of an entry."""

    scheme: int
    """The index in `_SCHEMES`, if `url` begins after the host; -1 if `url` is the whole address."""
    url: str
    job_type: str = ""
    """Empty for the default handler."""
    depth: int = 0
    parent: bytes = b""
    created_at: int = 0
    rest: bytes = b""
    """A task as JSON, with the fields that are not above. Empty: there are none."""


class Unpacked(NamedTuple):
    """An entry that was read from a queue."""

    fingerprint: bytes
    task: Task
    losses: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode


def pack(entry: Entry) -> bytes:
    """Pack a new entry for the queue of its task's site and priority."""
    task = entry.task
    scheme, url = _shortened(task)
    parent = _parent_bytes(task.parent)
    created_at = _whole_seconds(task.created_at)
    rest = _rest(task, parent, created_at)
    job_type = "" if task.job_type == wire.DEFAULT_HANDLER else task.job_type
    packed = _Packed(scheme, url, job_type, task.depth, parent, created_at, rest)
    head = entry.fingerprint + bytes((min(task.retry_count, MAX_TRIES), 0))
    if task.chain is not None:
        head += _chain_bytes(task.chain, is_next=bool(task.redirects))
    return head + _encode(packed)


def queue_of(task: Task) -> str:
    """The name of the queue in which a task waits: its host, or a lane, see lua/lanes.lua."""
    return f"{task.pool} {task.site}" if task.pool else task.site


def site_of(queue: str) -> str:
    """The host of the tasks in a queue."""
    return queue.rpartition(" ")[2]


def unpack(packed: bytes, queue: str, priority: int) -> Unpacked:
    """Unpack an entry from the queue of this host or lane, and of this priority."""
    attempts, losses = packed[8], packed[9]
    pool, _, site = queue.rpartition(" ")
    chain, start = _chain_in(packed) if packed[10] == CHAINED else (None, 10)
    short = _decode(packed[start:])
    url = short.url if short.scheme < 0 else f"{_SCHEMES[short.scheme]}{site}{short.url}"
    task = wire.decode(short.rest) if short.rest else Task(url=url)
    task.url, task.site, task.priority = url, site, priority
    task.depth, task.retry_count, task.chain = short.depth, attempts, chain
    if is_group(pool):
        task.session = session_of_pool(pool)
    elif pool:
        task.proxy_pool = pool
    if short.job_type:
        task.job_type = short.job_type
    if short.parent:
        task.parent = _parent_text(short.parent)
    if short.created_at:
        task.created_at = _moment(short.created_at)
    return Unpacked(packed[:8], task, losses)


def _chain_bytes(chain: str, *, is_next: bool) -> bytes:
    """Pack the chain of an entry. `is_next` is for the target of a redirect, which is the same step
    as the task that led there."""
    name = chain.encode()
    return _CHAIN.pack(CHAINED, NEXT if is_next else NO_TURN, len(name)) + name


def _chain_in(packed: bytes) -> tuple[str, int]:
    """The chain of an entry that has one, and the position at which its task begins."""
    start = 10 + _CHAIN.size
    end = start + _CHAIN.unpack_from(packed, 10)[2]
    return packed[start:end].decode(), end


def _shortened(task: Task) -> tuple[int, str]:
    url = task.url
    scheme = 0 if url.startswith("https:") else 1
    # The slash ends the host: shop.example must not match the beginning of shop.example:80.
    start = f"{_SCHEMES[scheme]}{task.site}/"
    return (scheme, url[len(start) - 1 :]) if url.startswith(start) else (-1, url)


@lru_cache(maxsize=64)  # All links of a page have the same parent and the same moment.
def _parent_bytes(parent: str | None) -> bytes:
    try:
        raw = bytes.fromhex(parent or "")
    except ValueError:
        return b""
    return raw if len(raw) == _PARENT_BYTES and raw.hex() == parent else b""


@lru_cache(maxsize=64)
def _whole_seconds(moment: datetime | None) -> int:
    if moment is None or moment.microsecond or moment.tzinfo is not UTC:
        return 0
    return max(int((moment - _EPOCH).total_seconds()), 0)


@lru_cache(maxsize=64)
def _parent_text(parent: bytes) -> str:
    return parent.hex()


@lru_cache(maxsize=64)
def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _rest(task: Task, parent: bytes, created_at: int) -> bytes:
    """The JSON of the fields that have no place of their own; empty if none of them is set."""
    odd_parent = task.parent is not None and not parent
    odd_moment = task.created_at is not None and not created_at
    if not odd_parent and not odd_moment and _is_usual(task):
        return b""
    rest = replace(
        task,
        url="",
        crawl="",
        job_type=wire.DEFAULT_HANDLER,
        site="",
        depth=0,
        priority=0,
        retry_count=0,
        chain=None,
        proxy_pool=None if task.pool else task.proxy_pool,
        session=None if task.pool else task.session,
        parent=task.parent if odd_parent else None,
        created_at=task.created_at if odd_moment else None,
    )
    return wire.encode(rest)


def _is_usual(task: Task) -> bool:
    return not (
        task.method != "GET"
        or task.meta
        or task.redirects
        or task.dont_filter
        or task.headers
        or task.body is not None
        or task.task_id
        or task.max_retries is not None
        or task.accept
        or task.on_failure
        or task.not_before is not None
        or task.session == NO_SESSION
        or task.proxy_pool == wire.DIRECT
        or task.cookies is not None
        or type(task) is not Task
    )
