"""Audits a crawl on a carrier: do its counters agree with the tasks in Redis and outside?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

_PACKED: Any = msgspec.msgpack.Decoder().decode


def carried_faults(client: Any, crawl: str) -> list[str]:
    """Everything that does not add up; empty if all is well."""
    base = f"shoal:{{{crawl}}}:"
    crawl_id = client.hget(f"{base}crawl", "id")
    if crawl_id is None or client.hget(f"{base}crawl", "state") == b"cancelled":
        return []
    prefix = f"{base}{crawl_id.decode()}:"
    here = Counter[str]()
    for key in client.scan_iter(f"{prefix}[qt]:*", count=1000):
        here[key.decode().rpartition(":")[2]] += client.llen(key)
    outside, blocks = Counter[str](), Counter[tuple[str, int, int]]()
    for packed in client.hvals(f"{prefix}carried"):
        host, priority, tasks, kind, _ = _PACKED(packed)
        outside[host] += tasks
        blocks[host, priority, kind] += 1
    return [
        *_of_hosts(client, prefix, here, outside),
        *_of_blocks(client, prefix, blocks),
        *_of_windows(client, prefix),
    ]


def _of_hosts(client: Any, prefix: str, here: Counter[str], outside: Counter[str]) -> list[str]:
    faults = []
    for name, packed in client.hgetall(f"{prefix}hosts").items():
        host = name.decode()
        waiting, suspects = _PACKED(packed)[:2]
        found = here[host] + outside[host] + suspects
        if waiting != found:
            faults.append(f"{host}: {waiting} are counted, {found} wait")
    return faults


def _of_blocks(client: Any, prefix: str, blocks: Counter[tuple[str, int, int]]) -> list[str]:
    counted = Counter[tuple[str, int, int]]()
    for name, packed in client.hgetall(f"{prefix}away").items():
        values = _PACKED(packed)[2:]
        for priority, shared, own, _ in zip(*(values[at::4] for at in range(4)), strict=True):
            counted[name.decode(), priority, 0] += shared
            counted[name.decode(), priority, 1] += own
    return [] if +counted == +blocks else [f"outside: {+counted} are counted, {+blocks} are"]


def _of_windows(client: Any, prefix: str) -> list[str]:
    """Faults of hosts noted as dry: one that still has tasks or a turn, or is not in both notes."""
    faults = []
    dry = {name.decode() for name in client.zrange(f"{prefix}dry", 0, -1)}
    noted = set()
    for name, packed in client.hgetall(f"{prefix}away").items():
        since, priority, *_ = _PACKED(packed)
        if since:
            noted.add(name.decode())
            if client.llen(f"{prefix}q:{priority}:{name.decode()}"):
                faults.append(f"{name.decode()}: is dry, and has tasks")
            if client.zscore(f"{prefix}ready", name) is not None:
                faults.append(f"{name.decode()}: is dry, and ready")
    return faults if noted == dry else [*faults, f"dry: {noted} are, {dry} are noted"]
