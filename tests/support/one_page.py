"""A worker that finishes one task, for tests that run it with another version of Shoal.

python -m support.one_page ADDRESS [NAME=COUNT ...]
    Finish a task of the crawl with these counts. Prints the crawl's statistics as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from shoal.frontier import frontier_at
from shoal.insight.json import crawl_json
from support.frontiers import CRAWL, Client


async def work(address: str, *counts: str) -> None:
    """Finish a task, and print the statistics."""
    fields: dict[str, Any] = {
        name: int(count) for name, count in (said.split("=") for said in counts)
    }
    async with frontier_at(address) as frontier:
        client = Client(frontier, "other", CRAWL)
        await client.end(await client.lease_one(), **fields)
        print(json.dumps(crawl_json(await client.stats(), time.time())))


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
