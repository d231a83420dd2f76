"""The defaults of scrapy-redis, under their old names."""

from __future__ import annotations

from typing import Any

DUPEFILTER_KEY = "dupefilter:%(timestamp)s"
PIPELINE_KEY = "%(spider)s:items"
STATS_KEY = "%(spider)s:stats"

REDIS_CLS = "redis.StrictRedis"
REDIS_ENCODING = "utf-8"
REDIS_PARAMS: dict[str, Any] = {
    "socket_timeout": 30,
    "socket_connect_timeout": 30,
    "encoding": REDIS_ENCODING,
}
REDIS_CONCURRENT_REQUESTS = 16

SCHEDULER_QUEUE_KEY = "%(spider)s:requests"
SCHEDULER_QUEUE_CLASS = "shoal.scrapy.queue.PriorityQueue"
SCHEDULER_DUPEFILTER_KEY = "%(spider)s:dupefilter"
SCHEDULER_DUPEFILTER_CLASS = "shoal.scrapy.dupefilter.RFPDupeFilter"
SCHEDULER_PERSIST = False
START_URLS_KEY = "%(name)s:start_urls"
MAX_IDLE_TIME = 0
