"""A crawl in which every word was chosen by somebody who means harm."""

from __future__ import annotations

import time
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from browser.windows import apart_run
from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control, Outcome, Pulse, Verdict
from shoal.results import open_results
from shoal.results.port import Batch
from support.processes import Folder

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e\x1b[2J\u2066\"'{{7*7}}"
"""As a crawl's name, a worker's, a handler's, an item's, in a reason, a traceback and a title."""
EVIL_URL = 'https://evil.example/"><script>alert(3)</script>?q=javascript:alert(4)'
LONG_URL = f"https://long.example/{'a' * 3000}"
LONG_S = 100_000.0
DEAD, WAITING, PAGES = 7, 49, 61
WORKER = Pulse(worker=EVIL, host="laptop", pid=1, version=EVIL, pages=3, rss_bytes=10**8)


class Hostile(NamedTuple):
    """The crawl, and where the dashboard has it."""

    crawl: str

    @property
    def place(self) -> str:
        return f"/crawls/{quote(self.crawl, safe='')}"

    @property
    def explained(self) -> str:
        return f"/explain?crawl={quote(self.crawl, safe='')}&url={quote(EVIL_URL, safe='')}"


def stage(folder: Folder, name: str) -> Hostile:
    """A crawl of which some is dead, some in hand and much waits."""
    crawl = f"{name} {EVIL}"
    apart_run(folder.ask_frontier(lambda frontier: _fill(frontier, crawl)))
    apart_run(_save(folder.address("SHOAL_RESULTS"), crawl))
    return Hostile(crawl)


async def _fill(frontier: Frontier, crawl: str) -> None:
    rules = Rules(rate="none", robots=False, concurrency_per_host=PAGES, lease_s=LONG_S)
    await frontier.start(crawl, rules)
    admission = Admission(rules)
    first = [EVIL_URL, LONG_URL]
    urls = [*first, *(f"https://shop{n % 3}.example/{n}" for n in range(PAGES - len(first)))]
    await frontier.add(
        crawl,
        [
            admission.admit(Task(url=url, job_type=EVIL, priority=9 * (url in first)))
            for url in urls
        ],
    )
    await frontier.control(crawl, Control.SEAL)
    await frontier.beat(crawl, WORKER)
    leases = (await frontier.lease(crawl, Ask(EVIL, PAGES - WAITING))).leases
    dead = sorted(leases, key=lambda lease: lease.task.url not in first)[:DEAD]
    outcomes = [
        Outcome(
            lease=lease,
            verdict=Verdict.DEAD,
            reason=EVIL,
            detail=f"Traceback:\n  {EVIL}",
            kind=FailureKind.HANDLER,
        )
        for lease in dead
    ]
    await frontier.finish(crawl, outcomes)


async def _save(address: str, crawl: str) -> None:
    item = StoredItem(
        kind=EVIL,
        key=EVIL,
        data=msgspec.json.encode({"title": EVIL, EVIL: EVIL}),
        url=EVIL_URL,
        fingerprint=bytes(16),
        scraped_at=time.time(),
    )
    results = open_results(address)
    try:
        await results.save(crawl, Batch(items=[item]))
    finally:
        await results.close()
