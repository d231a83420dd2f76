"""A process that uses a SQLite frontier, for tests that start and kill real ones.

python -m support.frontier_process work FILE WORKER PAGES
    Start (or join) a crawl of a tree of pages, and work until it is over. Prints "ready", waits
    for a line, then prints the numbers of the pages that each step has finished.
python -m support.frontier_process fill FILE BYTES
    Add tasks until writes fail, because the file may have no more than BYTES. Prints how many
    tasks were accepted, then the error.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from shoal.errors import StorageError
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Control, Entry, Lease, Outcome, Verdict
from support.frontiers import CRAWL, Client, entry, outcome
from support.until import until

HOSTS = 5
STEP = 7


def page(number: int) -> Entry:
    """One page of the tree."""
    return entry(f"h{number % HOSTS}.example/{number}", meta={"number": number})


def read_page(lease: Lease, pages: int) -> Outcome:
    """Read a page. Every fifth fails once; a page that is read links to two more, up to `pages`."""
    number = lease.task.meta["number"]
    if number % 5 == 0 and lease.task.retry_count == 0:
        return outcome(lease, Verdict.RETRY)
    links = [page(n) for n in (2 * number + 1, 2 * number + 2) if n < pages]
    return outcome(lease, follow_ups=links)


async def start(client: Client) -> None:
    """Start the crawl, or join it."""
    await client.start(page(0), max_losses=1000, lease_s=3600.0)
    await client.control(Control.SEAL)


async def work(client: Client, pages: int, *, report: bool = True) -> None:
    """Work until the crawl is over."""

    async def step() -> bool:
        grant = await client.ask(STEP)
        outcomes = [read_page(lease, pages) for lease in grant.leases]
        stale = await client.finish(*outcomes)
        done = [o.lease for o in outcomes if o.verdict is Verdict.DONE and o.lease not in stale]
        if report and done:
            print(*(lease.task.meta["number"] for lease in done), flush=True)
        return grant.state.over

    await until("the crawl's end", step)


async def start_and_work(path: Path, worker: str, pages: int) -> None:
    client = Client(SqliteFrontier(path), worker, CRAWL)
    print("ready", flush=True)
    sys.stdin.readline()
    await start(client)
    await work(client, pages)
    await client.frontier.close()


async def fill(path: Path, limit_bytes: int) -> None:
    client = Client(SqliteFrontier(path), "filler", CRAWL)
    await client.start()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    taken = 0
    try:
        while True:
            taken += (await client.add(*map(page, range(taken, taken + 50)))).added
    except StorageError as error:
        print(taken, type(error).__name__, error, flush=True)
    await client.frontier.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", path, worker, pages]:
            asyncio.run(start_and_work(Path(path), worker, int(pages)))
        case ["fill", path, limit_bytes]:
            asyncio.run(fill(Path(path), int(limit_bytes)))
