"""Runs one process of a Scrapy crawl, on a given scheduler.

`python -m benchmarks.scrapy_crawl SCHEDULER BASE_URL REDIS_URL FOLDER` prints one line of JSON: the
number of pages, and when it read the first and the last one.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from scrapy.crawler import CrawlerProcess

from benchmarks.scrapy_spiders import Bench, Queueing

CONCURRENCY = 32

_COMMON = {
    "CONCURRENT_REQUESTS": CONCURRENCY,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "INFO",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
}
_SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}
SCHEDULERS: dict[str, dict[str, Any]] = {
    "memory": {},
    "shoal": {"ADDONS": {"shoal.scrapy.Addon": 0}},
    "scrapy-redis": _SCRAPY_REDIS | {"SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.PriorityQueue"},
    "scrapy-redis-fifo": _SCRAPY_REDIS | {"SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue"},
}
"""The settings of each scheduler. The FifoQueue, without priorities, is scrapy-redis's fastest."""
TUNED: dict[str, Any] = {
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "CONCURRENT_ITEMS": 4,
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "EXTENSIONS_BASE": {"scrapy.extensions.feedexport.FeedExporter": 0},
    "LOG_ENABLED": False,
    "SPIDER_MIDDLEWARES_BASE": {},
}
"""The fastest settings: uvloop, no log, few tasks for the items of a page, and none of the
middlewares (retries, redirects, cookies, depth, ...), which these pages do not need."""
ITEMS: dict[str, dict[str, Any]] = {
    "shoal": {"ITEM_PIPELINES": {"shoal.scrapy.ResultsPipeline": 900}},
    "scrapy-redis": {"ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 400}},
}
"""The pipeline to each scheduler's own store. Without it, items go to a file."""


def settings_for(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of one contestant."""
    settings = _COMMON | SCHEDULERS[args.scheduler] | {"REDIS_URL": args.redis}
    settings["LOG_FILE"] = f"{args.folder}/{args.part}.log"
    if args.tuned:
        settings |= TUNED
    if args.store_items:
        settings |= ITEMS[args.scheduler.removesuffix("-fifo")]
        settings["SHOAL_RESULTS"] = f"sqlite:///{args.folder}/results.db"
    else:
        settings["FEEDS"] = {f"{args.folder}/%(time)s-{args.part}.jsonl": {"format": "jsonlines"}}
    if args.room:
        settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = args.room
    elif args.scheduler == "shoal":  # On Shoal, this limit is for all processes together.
        settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = CONCURRENCY * args.processes
    if args.only_queue:
        settings["CLOSESPIDER_PAGECOUNT"] = 1
    return settings


def main() -> None:
    """Crawl and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrapy_crawl")
    parser.add_argument("scheduler", choices=SCHEDULERS)
    parser.add_argument("base")
    parser.add_argument("redis")
    parser.add_argument("folder", help="where files may be written")
    parser.add_argument("--processes", type=int, default=1, help="that take part in all")
    parser.add_argument("--part", type=int, default=0, help="which of them this is")
    parser.add_argument("--room", type=int, help="requests in flight per domain; default 32 each")
    parser.add_argument("--store-items", action="store_true")
    parser.add_argument("--tuned", action="store_true", help="as fast as it can be made")
    parser.add_argument("--only-queue", action="store_true", help="close after the first page")
    args = parser.parse_args()
    process = CrawlerProcess(settings_for(args))
    crawler = process.create_crawler(Queueing if args.only_queue else Bench)
    process.crawl(crawler, base=args.base)
    process.start()
    spider = crawler.spider
    assert isinstance(spider, Bench)
    figures = {"pages": spider.pages, "began": spider.began_at, "ended": spider.last_at}
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
