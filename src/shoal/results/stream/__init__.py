"""Results that pass through a Redis stream: workers add them, `shoal drain` delivers them to a
store. Needs the extra `redis`.

worker ─ save ─▶ wire ▸ stream on Redis ─ take ─▶ deliverer ─ save ─▶ store ─ done ─▶ entry deleted
"""

from __future__ import annotations

from shoal.results.stream.queue import ResultQueue
from shoal.results.stream.results import RedisStreamResults

__all__ = ["RedisStreamResults", "ResultQueue"]
