"""Asks a frontier for what advice needs. Costs the same however large the crawl is."""

from __future__ import annotations

import asyncio
import time

from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import HostOrder
from shoal.insight.advise.situation import ENOUGH_ENDED, Look, Situation, situation
from shoal.insight.status import LANES_SEEN

HOSTS_SEEN = 400
"""How many hosts are looked at one by one. Those with less work count as alike."""
CHAINS_SEEN = 1000
LOOK_AGAIN_S = 1.0
LOOKS = 10
"""How often to look again, at most. Whether a crawl grows can only be seen once enough tasks have
ended between two looks."""


async def look_at(
    frontier: QueriesAndNotes, crawl: str, now: float, hosts: int = HOSTS_SEEN
) -> Look:
    """Look at a crawl. Raises UnknownCrawl."""
    stats = await frontier.stats(crawl)
    pools, sessions = stats.rules.pools, stats.rules.sessions
    busiest = await frontier.hosts(crawl, hosts, HostOrder.BUSIEST)
    with_work = [host for host in busiest if host.waiting or host.leased]
    return Look(
        at=now,
        stats=stats,
        workers=await frontier.workers(crawl),
        hosts=with_work,
        are_all_hosts=len(with_work) < hosts,
        chains=await frontier.chains(crawl, CHAINS_SEEN),
        pools=await frontier.pools() if pools or sessions else [],
        lanes=await frontier.lanes(crawl, LANES_SEEN) if pools or sessions else [],
    )


async def see(frontier: QueriesAndNotes, crawl: str) -> Situation:
    """The situation of a crawl, including whether it grows. If there is work left, this takes up to
    ten seconds. Raises UnknownCrawl."""
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
