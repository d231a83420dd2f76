"""Asking a frontier for what advice needs. Costs the same however large the crawl is."""

from __future__ import annotations

import asyncio
import time

from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import HostOrder
from shoal.insight.advise.situation import ENOUGH_ENDED, Look, Situation, situation
from shoal.insight.status import LANES_SEEN

HOSTS_SEEN = 400
"""Hosts that are told apart. All that have less to do are taken for alike."""
CHAINS_SEEN = 1000
LOOK_AGAIN_S = 1.0
LOOKS = 10
"""Whether a crawl grows is seen from the tasks that end between two looks. Nobody waits for more
than so many."""


async def look_at(
    frontier: QueriesAndNotes, crawl: str, now: float, hosts: int = HOSTS_SEEN
) -> Look:
    """A crawl as it is. Raises UnknownCrawl."""
    stats = await frontier.stats(crawl)
    pools, sessions = stats.rules.pools, stats.rules.sessions
    busiest = await frontier.hosts(crawl, hosts, HostOrder.BUSIEST)
    return Look(
        at=now,
        stats=stats,
        workers=await frontier.workers(crawl),
        hosts=[host for host in busiest if host.waiting or host.leased],
        are_all_hosts=len(busiest) < hosts,
        chains=await frontier.chains(crawl, CHAINS_SEEN),
        pools=await frontier.pools() if pools or sessions else [],
        lanes=await frontier.lanes(crawl, LANES_SEEN) if pools or sessions else [],
    )


async def see(frontier: QueriesAndNotes, crawl: str) -> Situation:
    """How a crawl stands, and whether it grows: that takes some seconds, if it is running. Raises
    UnknownCrawl."""
    before = await look_at(frontier, crawl, time.time())
    if situation(before).is_idle:
        return situation(before)
    look = before
    for _ in range(LOOKS):
        await asyncio.sleep(LOOK_AGAIN_S)
        look = await look_at(frontier, crawl, time.time())
        if look.stats.ended - before.stats.ended >= ENOUGH_ENDED:
            break
    return situation(look, before)
