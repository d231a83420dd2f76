"""What was measured, and what others have published: all that the paper is computed from."""

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
READ_US_PER_KB = Figure(18, "µs to read each further KB of a page", f"{HERE} reading")
WORKER_MB = Figure(62, "MB of a worker", "make bench")

REDIS_US = Figure(120, "µs of Redis's CPU per page that leads to ten new URLs", f"{HERE} trial")
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
    48, "ms that Redis stands still per GB, when it forks to rewrite its file", f"{HERE} trial"
)
COPIED_SHARE = Figure(
    0.3, "of the data, what Redis copies during a rewrite at full speed", f"{HERE} trial"
)

PAGE_LOG_BYTES = Figure(274, "bytes of PostgreSQL per page, page log alone", f"{HERE} page-log")
PAGE_LOG_INDEX_BYTES = Figure(81, "of these, bytes of indexes", f"{HERE} page-log")
SAVED_BYTES = Figure(1_081, "bytes per page, page log and an item with history", f"{HERE} page-log")
SAVED_INDEX_BYTES = Figure(406, "of these, bytes of indexes", f"{HERE} page-log")
SAVED_PER_S = Figure(
    19_784, "pages/s into PostgreSQL by one client, with an item each", f"{HERE} page-log"
)

THEIR_PER_S = Figure(10_948, "pages/s of the published crawl", PUBLISHED)
THEIR_MACHINES = Figure(12, "its machines", PUBLISHED)
THEIR_HOURS = Figure(25.5, "its hours", PUBLISHED)
THEIR_DOLLARS = Figure(462, "its price in $", PUBLISHED)
PAGE_KB = Figure(242, "KB of a page, on the average", PUBLISHED)

FIGURES = [figure for figure in list(globals().values()) if isinstance(figure, Figure)]
