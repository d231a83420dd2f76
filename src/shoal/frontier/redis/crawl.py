"""One crawl on Redis: its shards as one.

On one server there is one shard, every step is one script, and a script ends the crawl. In a
cluster, the hosts are spread over several shards. Steps that concern more than one shard are
done here, in an order in which a crash at any point loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from shoal.config import Rules
from shoal.drivers.redis.scripts import Argument
from shoal.errors import ConfigError, StorageBusy
from shoal.frontier.facts import steered
from shoal.frontier.redis.forms import Group, grouped
from shoal.frontier.redis.names import shard_of
from shoal.frontier.redis.packing import site_of
from shoal.frontier.redis.shard import Offer, Shard
from shoal.frontier.redis.stats import stats_of
from shoal.frontier.values import (
    CANCELLED,
    Added,
    Ask,
    Control,
    CrawlState,
    Entry,
    Grant,
    Holding,
    Lease,
    Outcome,
    Stats,
)


class RedisCrawl:
    """A crawl and its shards."""

    def __init__(self, name: str, shards: list[Shard]) -> None:
        self.name = name
        self.shards = shards
        self.home = shards[0]
        """The shard with everything that exists only once per crawl."""
        self._turn = count()

    def shard(self, site: str) -> Shard:
        """The shard of a host."""
        return self.shards[shard_of(site, len(self.shards))]

    async def start(self, action: str, rules: Rules) -> None:
        """Create or start the crawl. The action is `make`, `start` or `begin`: see start.lua."""
        for shard in self.shards:
            state = await shard.start(action, len(self.shards), rules)
            if state is CrawlState.CANCELLED and action == "start":
                raise ConfigError(CANCELLED.format(self.name))

    async def add(self, entries: Sequence[Entry]) -> Added:
        """Queue tasks that were never seen. Dead tasks that are to be retried are retried first:
        after that, they are duplicates for the scripts, whatever becomes of them."""
        retried = await self._retry([entry.fingerprint for entry in entries if entry.retry])
        total, wakes = Added(), False
        for shard, groups in self._spread(grouped(entries)) or [(self.home, [])]:
            was, added = await shard.add(groups)
            if was is CrawlState.CANCELLED:
                raise ConfigError(CANCELLED.format(self.name))
            wakes |= was is CrawlState.FINISHED and added.added > 0
            total += added
        if wakes:
            await self._wake()
            await self._finish_if_idle(True)  # New seeds do not lift `max_pages`.
        return total.with_retried(retried)

    async def _retry(self, fingerprints: Sequence[bytes]) -> int:
        shards = self.shards if fingerprints else []
        return sum([await self.retry_or_purge(at, fingerprints, retry=True) for at in shards])

    async def remember(self, fingerprints: Sequence[bytes]) -> None:
        """Remember these fingerprints as done. They do not tell which host they belong to, so every
        shard gets all of them."""
        for shard in self.shards:
            if await shard.remember(fingerprints) is CrawlState.CANCELLED:
                raise ConfigError(CANCELLED.format(self.name))

    async def lease(self, ask: Ask) -> Grant:
        """Ask the shards for work, beginning with another one each time."""
        if len(self.shards) == 1:
            return (await self.home.lease(ask, suspects=True)).grant
        counts = await self._counts()
        stats = stats_of(self.name, counts)
        ask = replace(ask, room=min(ask.room, _pages_left(stats)))
        offers = await self._ask_shards(ask, suspects=False)
        shares = _shares(offers)
        if not _have_leases(offers) and not any(offer.holds for offer in offers):
            offers = await self._ask_shards(ask, suspects=True)
            shares |= _shares(offers)  # Not all shards are asked again.
        state = offers[0].grant.state
        is_idle = not _have_leases(offers) and any(offer.idle for offer in offers)
        if await self._finish_if_idle(is_idle):
            state = CrawlState.FINISHED
        epoch = hash(tuple(shard["epoch"] for shard in counts))
        return replace(_merged(offers, state, epoch), shares=shares)

    async def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """Prolong leases. Returns the stale ones."""
        stale = list[Lease]()
        for shard in self.shards:
            stale += await shard.renew([at for at in leases if self.shard(at.task.site) is shard])
        return stale

    async def finish(self, outcomes: Sequence[Outcome]) -> list[Lease]:
        """End tries. Returns the leases that were stale.

        Follow-ups for other shards are queued before the try that found them ends: after a crash in
        between, the try is repeated, and its follow-ups are duplicates. Only tries whose leases are
        still ours may queue anything, so these leases are prolonged first.
        """
        if len(self.shards) == 1:
            return (await self.home.finish(outcomes))[1]
        once = {outcome.lease.token: outcome for outcome in reversed(outcomes)}
        stale = [outcome.lease for outcome in outcomes if once[outcome.lease.token] is not outcome]
        outcomes = [outcome for outcome in outcomes if once[outcome.lease.token] is outcome]
        lost = await self._queue_on_other_shards(outcomes)
        stale += lost
        outcomes = [outcome for outcome in outcomes if outcome.lease not in lost]
        is_idle = False
        for shard in self.shards:
            own = [outcome for outcome in outcomes if self.shard(outcome.lease.task.site) is shard]
            after, more = await shard.finish([self._for_own_shard(outcome) for outcome in own])
            stale += more
            is_idle |= after.idle
        await self._finish_if_idle(is_idle)
        return stale

    async def exchange(self, outcomes: Sequence[Outcome], ask: Ask) -> tuple[list[Lease], Grant]:
        """Finish, then lease. Returns the stale leases, and the grant."""
        if len(self.shards) == 1:
            return await self.home.exchange(outcomes, ask)
        return await self.finish(outcomes), await self.lease(ask)

    async def control(self, action: Control) -> CrawlState:
        """Seal, pause, resume or cancel the crawl. Raises ConfigError if its state does not allow
        that."""
        was, after = await self.home.control(action)
        steered(self.name, was, action)
        await self._control_others(action)
        await self._finish_if_idle(after.idle)
        return (await self.stats()).state if len(self.shards) > 1 else after.state

    async def release(self, worker: str) -> int:
        """Take back what a dead worker held. Returns the number of leases."""
        total, is_idle = 0, False
        for shard in self.shards:
            after, released = await shard.release(worker)
            total += released
            is_idle |= after.idle
        await self._finish_if_idle(is_idle)
        return total

    async def retry_or_purge(
        self, shard: Shard, fingerprints: Sequence[bytes], *, retry: bool
    ) -> int:
        """Retry or purge dead tasks of one shard. Returns how many."""
        was, is_idle, count = await shard.retry_or_purge(fingerprints, retry=retry)
        if retry and was is CrawlState.CANCELLED and count:
            raise ConfigError(CANCELLED.format(self.name))
        if retry and was is CrawlState.FINISHED and count:
            await self._wake()
        await self._finish_if_idle(is_idle)
        return count

    async def stats(self) -> Stats:
        """The statistics of all shards, added up."""
        return stats_of(self.name, await self._counts())

    async def stats_with(self, *more: Sequence[Argument]) -> tuple[Stats, list[Any]]:
        """The statistics of all shards, added up, and, in the same round trip, the answers to plain
        commands. If a command fails, its answer is the error."""
        flat, answers = await self.home.run_with(more, "stats")
        counts = [self.home.counts_of(flat), *[await at.counts() for at in self.shards[1:]]]
        return stats_of(self.name, counts), answers

    async def _counts(self) -> list[dict[str, str]]:
        return [await shard.counts() for shard in self.shards]

    # Several shards

    def _spread(self, groups: Iterable[Group]) -> Iterable[tuple[Shard, list[Group]]]:
        spread: dict[Shard, list[Group]] = {}
        for group in groups:
            spread.setdefault(self.shard(site_of(group[0])), []).append(group)
        return spread.items()

    async def _ask_shards(self, ask: Ask, *, suspects: bool) -> list[Offer]:
        """Ask each shard for its part of the room, and then those that filled theirs for the room
        that others had no work for. Each shard is told what the worker has of its hosts."""
        first = next(self._turn) % len(self.shards)
        asked = self.shards[first:] + self.shards[:first]
        holdings = self._spread_holdings(ask)
        offers: list[Offer] = []
        left = ask.room
        for again, portion in enumerate((-(-ask.room // len(asked)), ask.room)):
            with_more: list[Shard] = []
            for shard in asked:
                is_due = not again and (not ask.room or bool(holdings[shard]))
                if left <= 0 and not is_due:
                    continue
                try:
                    part = replace(ask, room=min(portion, left), holdings=holdings[shard])
                    offer = await shard.lease(part, suspects=suspects)
                except StorageBusy:
                    if left == ask.room:
                        raise
                    return offers  # What was granted so far must be worked on.
                offers.append(offer)
                holdings[shard] = _with_granted(holdings[shard], offer.grant)
                granted = len(offer.grant.leases)
                left -= granted
                if granted and suspects:
                    return offers
                if granted and granted >= part.room:
                    with_more.append(shard)
            asked = with_more
        return offers

    def _spread_holdings(self, ask: Ask) -> dict[Shard, dict[str, Holding]]:
        spread: dict[Shard, dict[str, Holding]] = {shard: {} for shard in self.shards}
        for site, holding in ask.holdings.items():
            spread[self.shard(site)][site] = holding
        return spread

    async def _queue_on_other_shards(self, outcomes: Sequence[Outcome]) -> list[Lease]:
        """Queue the follow-ups that belong to another shard than their page. Returns the leases
        that were stale: their follow-ups are not queued."""
        leading_away = [outcome for outcome in outcomes if self._for_other_shards(outcome)]
        if not leading_away:
            return []
        stale = await self.renew([outcome.lease for outcome in leading_away])
        entries = [
            entry
            for outcome in leading_away
            if outcome.lease not in stale
            for entry in self._for_other_shards(outcome)
        ]
        for shard, groups in self._spread(grouped(entries)):
            await shard.finish([], groups)
        return stale

    def _for_other_shards(self, outcome: Outcome) -> list[Entry]:
        own = self.shard(outcome.lease.task.site)
        return [entry for entry in outcome.follow_ups if self.shard(entry.task.site) is not own]

    def _for_own_shard(self, outcome: Outcome) -> Outcome:
        own = self.shard(outcome.lease.task.site)
        staying = [entry for entry in outcome.follow_ups if self.shard(entry.task.site) is own]
        return replace(outcome, follow_ups=staying)

    async def _control_others(self, action: str) -> None:
        for shard in self.shards[1:]:
            await shard.control(action)

    async def _wake(self) -> None:
        for shard in self.shards:
            await shard.control("wake")

    async def _finish_if_idle(self, one_is_idle: bool) -> bool:
        """End the crawl if no shard has anything left to do. Returns whether it ended.

        The shards are read one after the other, and a try in one may queue work in another that was
        read before. So they are read twice: if no counter has moved, nothing was under way.
        """
        if len(self.shards) == 1 or not one_is_idle:
            return False
        before = await self._all_idle()
        if before is None or before != await self._all_idle():
            return False
        states = [(await shard.control("finish"))[1].state for shard in self.shards]
        if any(state.live for state in states):  # New work came meanwhile.
            await self._wake()
            return False
        return True

    async def _all_idle(self) -> list[tuple[str, ...]] | None:
        """Counters that move whenever anything happens; None if there is something to do."""
        counts = await self._counts()
        stats = stats_of(self.name, counts)
        limit = stats.rules.max_pages
        is_full = limit is not None and stats.tried >= limit and not stats.leased
        if not stats.state.live or not (is_full or all(int(c["idle"]) for c in counts)):
            return None
        return [
            tuple(c.get(name, "") for name in ("added", "done", "dead", "retries")) for c in counts
        ]


def _pages_left(stats: Stats) -> int:
    """How many more tasks may be handed out. If several workers ask several shards at once, each
    may get as many: then `max_pages` is exceeded by that number."""
    if stats.rules.max_pages is None:
        return stats.added
    return max(stats.rules.max_pages - stats.tried - stats.leased, 0)


def _have_leases(offers: Sequence[Offer]) -> bool:
    return any(offer.grant.leases for offer in offers)


def _shares(offers: Sequence[Offer]) -> dict[str, int]:
    return {site: share for offer in offers for site, share in offer.grant.shares.items()}


def _with_granted(holdings: Mapping[str, Holding], grant: Grant) -> dict[str, Holding]:
    """What a worker has of the hosts that it shares, including what it was just granted."""
    more = Counter(lease.task.site for lease in grant.leases if lease.shared)
    none = Holding(in_flight=0, unsent=0)
    had = {site: holdings.get(site, none) for site in grant.shares}
    return {site: Holding(at.in_flight, at.unsent + more[site]) for site, at in had.items()}


def _merged(offers: Sequence[Offer], state: CrawlState, epoch: int) -> Grant:
    waits = [offer.grant.wait_s for offer in offers if offer.grant.wait_s is not None]
    return Grant(
        state=state,
        leases=[lease for offer in offers for lease in offer.grant.leases],
        wait_s=min(waits, default=None),
        has_waiting=any(offer.grant.has_waiting for offer in offers),
        epoch=epoch,
        decided=min(offer.grant.decided for offer in offers),
    )
