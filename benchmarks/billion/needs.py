"""Computes what a billion pages need, and after how many pages each part fails. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, sqrt

import msgspec

from benchmarks.billion import figures
from benchmarks.billion.reading import SMALL_KB
from benchmarks.billion.web import NEW_PER_PAGE
from shoal.config import Rules
from shoal.core.urls import FINGERPRINT_BYTES
from shoal.frontier.redis.prelude import BLOOM_FIRST
from shoal.frontier.redis.rules import BLOOM_LAYERS, numbers_of

PAGES = 10**9
PER_S = figures.THEIR_PER_S.value
SECONDS = PAGES / PER_S
MACHINE_CORES = 16
MACHINE_GB = 128
MACHINE_DISK_GB = 3_750
MACHINE_PER_HOUR = (
    figures.THEIR_DOLLARS.value / figures.THEIR_MACHINES.value / figures.THEIR_HOURS.value
)
"""What one machine of the published crawl cost per hour, in dollars."""
USE = 0.8
"""The share of cores, memory and disks that may be planned with."""
REDIS_USE = 0.6
"""The share of a Redis's one core that may be used. Above it, clients have to wait."""
SHARD_GB = 32
"""The most data of one Redis. With more, it stops for too long when it forks."""
HEADROOM = 1.5
"""Memory relative to the data: a rewrite of the append-only file copies what the crawl changes
meanwhile. Trials saw 8 to 15 % of the data; larger data take longer to write, so more changes."""
QUEUED_PER_PAGE = NEW_PER_PAGE - 1


class Layout(msgspec.Struct, frozen=True):
    """How URLs are stored, and the bytes of Redis that each takes."""

    name: str
    queued_bytes: float
    known_bytes: float
    is_bloom: bool


EXACT = Layout(
    "Redis alone, exact", figures.QUEUED_BYTES.value, figures.KNOWN_BYTES.value, is_bloom=False
)
LAYOUTS = (
    EXACT,
    Layout("Redis alone, Bloom", figures.QUEUED_BYTES.value, figures.BLOOM_BYTES.value, True),
    Layout("`?blocks=on`, Bloom", figures.BLOCKS_BYTES.value, figures.BLOOM_BYTES.value, True),
    Layout("RabbitMQ, Bloom", figures.BROKER_BYTES.value, figures.BLOOM_BYTES.value, True),
)


class FrontierNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What the frontier needs at the end of the crawl, when it is largest."""

    layout: Layout
    queued_gb: float
    known_gb: float
    memory_gb: float
    """Includes the copies that a rewrite of the append-only file makes."""
    disk_gb: float
    """The blocks that a broker holds."""
    shards: int
    why: str
    """The resource that determines the number of shards."""

    @property
    def data_gb(self) -> float:
        return self.queued_gb + self.known_gb


def frontier_need(layout: Layout, pages: float = PAGES) -> FrontierNeed:
    """The memory and the servers that a frontier of this layout needs."""
    queued_gb = pages * QUEUED_PER_PAGE * layout.queued_bytes / 1e9
    known_gb = pages * NEW_PER_PAGE * layout.known_bytes / 1e9
    data_gb = queued_gb + known_gb
    carried_bytes = figures.BLOCKS_BYTES.value - figures.BROKER_BYTES.value
    is_carried = layout.queued_bytes == figures.BROKER_BYTES.value
    wanted = {
        "memory": ceil(data_gb / SHARD_GB),
        "its core": ceil(PER_S * figures.REDIS_US.value / 1e6 / REDIS_USE),
        "Bloom": ceil(pages * NEW_PER_PAGE / bloom_capacity()) if layout.is_bloom else 0,
    }
    why = max(wanted, key=lambda reason: wanted[reason])
    return FrontierNeed(
        layout=layout,
        queued_gb=queued_gb,
        known_gb=known_gb,
        memory_gb=data_gb * HEADROOM,
        disk_gb=pages * QUEUED_PER_PAGE * carried_bytes / 1e9 if is_carried else 0.0,
        shards=wanted[why],
        why=why,
    )


def bloom_capacity() -> float:
    """How many URLs the Bloom filter of one shard can hold within its error rate."""
    bits_per_url = numbers_of(Rules(seen="bloom"), 1)["bloom_bits"] / 1000
    bits: int = BLOOM_FIRST * (2**BLOOM_LAYERS - 1) * 8
    return bits / bits_per_url


class WorkerNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What workers need for one kind of page."""

    page: str
    us: float
    cores: float

    @property
    def gbit_per_s(self) -> float:
        """Bandwidth of bodies, uncompressed."""
        kilobytes = float(self.page.partition(" ")[0])
        return kilobytes * PER_S * 8 / 1e6


def worker_needs() -> list[WorkerNeed]:
    """What workers need for small pages, small pages with TLS, and the published crawl's pages."""
    plain_us = figures.WORKER_US.value
    tls_us = plain_us + figures.TLS_US.value
    large_kb = figures.PAGE_KB.value
    large_us = tls_us + (large_kb - SMALL_KB) * figures.READ_US_PER_KB.value
    pages = {
        f"{SMALL_KB} KB": plain_us,
        f"{SMALL_KB} KB, TLS for each": tls_us,
        f"{large_kb:.0f} KB, TLS for each": large_us,
    }
    return [WorkerNeed(page=name, us=us, cores=PER_S * us / 1e6) for name, us in pages.items()]


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The machines for everything, of the kind that the published crawl used."""

    cores: float
    memory_gb: float
    disk_gb: float
    machines: int
    why: str
    dollars: float


def fleet_need(worker: WorkerNeed, frontier: FrontierNeed) -> Fleet:
    """What workers, frontier and results need together."""
    redis_cores = PER_S * figures.REDIS_US.value / 1e6
    postgres_cores = PER_S * figures.SAVED_US.value / 1e6
    cores = worker.cores + redis_cores + postgres_cores
    memory_gb = frontier.memory_gb + worker.cores * figures.WORKER_MB.value / 1e3
    disk_gb = PAGES * figures.SAVED_BYTES.value / 1e9 + frontier.disk_gb
    wanted = {
        "CPU": ceil(cores / MACHINE_CORES / USE),
        "memory": ceil(memory_gb / MACHINE_GB / USE),
        "disk": ceil(disk_gb / MACHINE_DISK_GB / USE),
    }
    why = max(wanted, key=lambda reason: wanted[reason])
    return Fleet(
        cores=cores,
        memory_gb=memory_gb,
        disk_gb=disk_gb,
        machines=wanted[why],
        why=why,
        dollars=wanted[why] * MACHINE_PER_HOUR * SECONDS / 3600,
    )


class Break(msgspec.Struct, frozen=True):
    """Something that fails, and after how many pages."""

    pages: float
    what: str
    cure: str


def breaks() -> list[Break]:
    """What fails with one Redis and one PostgreSQL, each on its own machine, in that order."""
    return sorted(_breaks(), key=lambda each: each.pages)


def _breaks() -> Iterator[Break]:
    bytes_per_page = QUEUED_PER_PAGE * EXACT.queued_bytes + NEW_PER_PAGE * EXACT.known_bytes
    stall_gb = 1000 / figures.STALL_MS_PER_GB.value
    yield Break(
        stall_gb * 1e9 / bytes_per_page,
        "Redis stops for a second at each rewrite of its append-only file, to fork",
        f"shards of less than {SHARD_GB} GB; carried blocks",
    )
    yield Break(
        MACHINE_GB * 1e9 / 2 / bytes_per_page,
        "a rewrite may run out of memory: in the worst case it copies all data",
        "half of the memory kept free; carried blocks",
    )
    yield Break(
        MACHINE_GB * 1e9 / bytes_per_page,
        f"queued and known URLs fill {MACHINE_GB} GB",
        "carried blocks and a Bloom filter; otherwise a cluster, or several crawls",
    )
    yield Break(
        bloom_capacity() / NEW_PER_PAGE,
        "a Bloom filter, if used, reaches its eight layers: errors exceed `seen_error`,"
        " and each look-up takes one more layer for every 140 million URLs",
        "shards; or `seen_for`, if URLs may be forgotten",
    )
    yield Break(
        MACHINE_GB * 1e9 * USE / figures.SAVED_INDEX_BYTES.value,
        "indexes of the page log and the items no longer fit into PostgreSQL's memory: each row"
        " causes a read from disk",
        "`history = off`; several crawls, each with its own database",
    )
    yield Break(
        MACHINE_DISK_GB * 1e9 * USE / figures.SAVED_BYTES.value,
        f"page log and items fill {MACHINE_DISK_GB:,} GB",
        "`shoal results prune`, since there is a table per month",
    )
    yield Break(
        sqrt(2.0 ** (8 * FINGERPRINT_BYTES + 1)) / NEW_PER_PAGE,
        "two URLs probably share a fingerprint, so one of them is never fetched",
        "none: it is one URL in billions",
    )
