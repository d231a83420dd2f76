"""Figures that were measured or published by others. All tables on paper are computed from them."""

from __future__ import annotations

import msgspec

HERE = "python -m benchmarks.billion"
PUBLISHED = "published"


class Figure(msgspec.Struct, frozen=True):
    """One number, and the command that gives it."""

    value: float
    what: str
    command: str


WORKER_US = Figure(530, "µs of a worker's CPU per page of 11 KB, without TLS", "make bench")
TLS_US = Figure(
    1_421, "µs more for a connection with TLS, if every page needs one", "python -m benchmarks.tls"
)
READ_US_PER_KB = Figure(18, "µs to parse each further KB of a page", f"{HERE} reading")
WORKER_MB = Figure(62, "MB of a worker", "make bench")

REDIS_US = Figure(
    217,
    "µs of Redis's CPU per page that leads to ten new URLs, with its append-only file",
    f"{HERE} trial --store redis --pages 1000000",
)
KNOWN_BYTES = Figure(56, "bytes of Redis per known URL, exact", "python -m benchmarks.redis_memory")
BLOOM_BYTES = Figure(
    2.7, "bytes of Redis per known URL, Bloom filter", "python -m benchmarks.redis_memory"
)
QUEUED_BYTES = Figure(84, "bytes of Redis per queued URL", "python -m benchmarks.carried_memory")
BLOCKS_BYTES = Figure(28.7, "the same with `?blocks=on`", "python -m benchmarks.carried_memory")
BROKER_BYTES = Figure(
    6.4, "the same with RabbitMQ", "python -m benchmarks.carried_memory --broker amqp://..."
)
STALL_MS_PER_GB = Figure(
    26,
    "ms per GB for which Redis stops when it forks to rewrite its file",
    f"{HERE} trial --store redis --pages 1000000",
)

SAVED_BYTES = Figure(
    1_081, "bytes of PostgreSQL per page: page log, an item, its history", f"{HERE} page-log"
)
SAVED_INDEX_BYTES = Figure(406, "of these, bytes of indexes", f"{HERE} page-log")
SAVED_US = Figure(39, "µs of PostgreSQL's CPU per page to save these", f"{HERE} page-log")

THEIR_PER_S = Figure(10_948, "pages/s of the published crawl", PUBLISHED)
THEIR_MACHINES = Figure(12, "its machines", PUBLISHED)
THEIR_HOURS = Figure(25.5, "its hours", PUBLISHED)
THEIR_DOLLARS = Figure(462, "its price in $", PUBLISHED)
PAGE_KB = Figure(242, "KB of a page, on average", PUBLISHED)

FIGURES = [figure for figure in list(globals().values()) if isinstance(figure, Figure)]
