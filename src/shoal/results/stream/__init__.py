"""Results that travel through a Redis stream: workers put them in, drainers write them to a store.

worker ─ save ─▶ wire ▸ stream on Redis ─ take ─▶ drainer ─ save ─▶ store ─ done ─▶ entry deleted
"""

from __future__ import annotations

from shoal.results.stream.queue import ResultQueue
from shoal.results.stream.results import RedisStreamResults

__all__ = ["RedisStreamResults", "ResultQueue"]
