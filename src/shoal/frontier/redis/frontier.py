"""The fleet's frontier on Redis or Valkey: one server, the master of a sentinel, or a cluster."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from shoal.config import Rules
from shoal.core.exits import Exit, ExitEntry, LaneState, Lent, PoolRules, PoolState
from shoal.core.identities import Account, IdentityReport
from shoal.core.records import Robots
from shoal.core.shapes import Trap
from shoal.drivers.redis.link import RedisLink, redis_address
from shoal.errors import ConfigError, NewerFormat, UnknownCrawl
from shoal.frontier import stored_robots
from shoal.frontier.facts import check_name
from shoal.frontier.port import Capabilities, Frontier, Held
from shoal.frontier.redis.accounts import RedisAccounts
from shoal.frontier.redis.board import RedisNotes
from shoal.frontier.redis.chains import chains_of
from shoal.frontier.redis.crawl import RedisCrawl
from shoal.frontier.redis.dead import count_dead, list_dead, move_dead
from shoal.frontier.redis.exits import RedisExits
from shoal.frontier.redis.find import find, find_others
from shoal.frontier.redis.garbage import sweep
from shoal.frontier.redis.inbox import collect
from shoal.frontier.redis.leased import leased
from shoal.frontier.redis.names import (
    BY_EXITS,
    CRAWLS,
    inbox_key,
    rejected_key,
    shards_key,
    tag_by_exits,
    tags,
)
from shoal.frontier.redis.rules import has_lanes
from shoal.frontier.redis.shard import Clock, Shard
from shoal.frontier.redis.stats import ahead_of, host_of, note_failures, waiting_of
from shoal.frontier.redis.traps import traps_of
from shoal.frontier.redis.windows import CarrierSetup
from shoal.frontier.values import (
    ALL_DEAD,
    WORKER_SILENT_S,
    Added,
    Ask,
    Chain,
    Control,
    CrawlState,
    DeadFilter,
    DeadPlace,
    Entry,
    Grant,
    Host,
    HostOrder,
    Lease,
    Leased,
    Outcome,
    Pulse,
    Record,
    Stats,
)

T = TypeVar("T")

SPREAD = (
    "crawl '{}' is spread over a cluster, and cannot have pools or sessions; --fresh starts it over"
)

_ORDERS = {
    HostOrder.BUSIEST: "load",
    HostOrder.SLOWEST: "slow",
    HostOrder.FAILING: "failing",
}

_RANK: dict[HostOrder, Callable[[Host], tuple[float | str, ...]]] = {
    HostOrder.BUSIEST: lambda host: (-host.waiting - host.leased, -host.done, host.host),
    HostOrder.SLOWEST: lambda host: (-host.latency_s, host.host),
    HostOrder.FAILING: lambda host: (-host.failed, host.host),
}

_read_pulse = msgspec.json.Decoder(Pulse).decode

log = logging.getLogger("shoal")


class RedisFrontier(Frontier):
    """The frontier port on Redis, for any number of machines."""

    def __init__(
        self, address: str, clock: Clock | None = None, carrier_setup: CarrierSetup | None = None
    ) -> None:
        """`clock` replaces the server's, for tests. `carrier_setup` is for clients with a carrier:
        see windows.py."""
        self._link = RedisLink(redis_address(address))
        self._clock = clock
        self._carrier_setup = carrier_setup
        self._crawls: dict[str, RedisCrawl] = {}
        self._left_out: set[bytes] = set()
        self._notes = RedisNotes(self._link, clock)
        self._exits = RedisExits(self._link, clock)
        self._accounts = RedisAccounts(self._link, self._exits)

    @property
    def capabilities(self) -> Capabilities:
        is_one_server = not self._link.is_cluster
        return Capabilities(
            strict_priorities=True,
            chains_across_hosts=is_one_server,
            exact_waits=is_one_server,
            exact_max_pages=is_one_server,
            exact_rate=is_one_server,
            bounded_seen=True,
            keeps_ended=False,
            whole_backlog=True,
        )

    @property
    def notes(self) -> RedisNotes:
        return self._notes

    # Bringing work

    async def start(self, crawl: str, rules: Rules, *, again: bool = True) -> Stats:
        await self._warn_if_forgetful()
        await self._make(crawl, rules)
        on_redis = await self._crawl(crawl)
        await on_redis.start("start" if again else "begin", rules)
        for shard in on_redis.shards:
            await sweep(self._link, shard.base)  # An interrupted `forget` may have left keys.
        return await self.stats(crawl)

    async def add(self, crawl: str, entries: Sequence[Entry]) -> Added:
        return await self._bring(crawl, lambda on_redis: on_redis.add(entries))

    async def remember(self, crawl: str, fingerprints: Sequence[bytes]) -> None:
        await self._bring(crawl, lambda on_redis: on_redis.remember(fingerprints))

    async def _bring(self, crawl: str, bring: Callable[[RedisCrawl], Awaitable[T]]) -> T:
        try:
            brought = await bring(await self._crawl(crawl))
        except UnknownCrawl:
            await self._make(crawl, Rules())
            brought = await bring(await self._crawl(crawl))
        await self._link.replicated()
        return brought

    # Working

    async def lease(self, crawl: str, ask: Ask) -> Grant:
        return await (await self._crawl(crawl)).lease(ask)

    async def renew(self, crawl: str, leases: Sequence[Lease]) -> list[Lease]:
        return await (await self._crawl(crawl)).renew(leases)

    async def finish(self, crawl: str, outcomes: Sequence[Outcome]) -> list[Lease]:
        return await (await self._crawl(crawl)).finish(outcomes)

    async def exchange(
        self, crawl: str, outcomes: Sequence[Outcome], ask: Ask
    ) -> tuple[list[Lease], Grant]:
        return await (await self._crawl(crawl)).exchange(outcomes, ask)

    async def robots(self, crawl: str, host: str) -> Robots | None:
        prefix = await (await self._crawl(crawl)).shard(host).prefix()
        stored = await self._link.command("HGET", f"{prefix}robots", host)
        return stored_robots.unpack(stored) if stored else None

    async def turn(self, crawl: str, host: str, lent: Lent | None) -> float:
        return await (await self._crawl(crawl)).shard(host).turn(host, lent)

    async def beat(self, crawl: str, pulse: Pulse) -> bool:
        home = (await self._crawl(crawl)).home
        inbox = ("EXISTS", inbox_key(crawl))
        _, (has_seeds,) = await home.run_with(
            [inbox], "beat", pulse.worker, msgspec.json.encode(pulse)
        )
        return bool(has_seeds == 1)

    async def collect(self, crawl: str, read: Callable[[bytes], Entry]) -> Added:
        return await collect(self._link, crawl, read, lambda entries: self.add(crawl, entries))

    # Looking after a crawl

    async def control(self, crawl: str, action: Control) -> CrawlState:
        return await (await self._crawl(crawl)).control(action)

    async def forget(self, crawl: str) -> None:
        try:
            shards = (await self._crawl(crawl)).shards
        except UnknownCrawl:
            return
        for shard in shards:
            await shard.run("forget")
        await self._link.command("SREM", CRAWLS, crawl)
        await self._link.command("DEL", shards_key(crawl))
        await self._link.command("DEL", rejected_key(crawl))
        self._crawls.pop(crawl, None)
        for shard in shards:
            await sweep(self._link, shard.base)

    async def holders(self, crawl: str) -> list[str]:
        names = set[bytes]()
        for shard in (await self._crawl(crawl)).shards:
            names.update(await shard.run("holders"))
        return sorted(name.decode() for name in names)

    async def release(self, crawl: str, worker: str) -> int:
        return await (await self._crawl(crawl)).release(worker)

    async def retry_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        on_redis = await self._crawl(crawl)
        if dry_run:
            return await count_dead(on_redis, which)
        return await move_dead(on_redis, which, retry=True)

    async def purge_dead(
        self, crawl: str, which: DeadFilter = ALL_DEAD, *, dry_run: bool = False
    ) -> int:
        on_redis = await self._crawl(crawl)
        if dry_run:
            return await count_dead(on_redis, which)
        return await move_dead(on_redis, which, retry=False)

    # Asking

    async def stats(self, crawl: str) -> Stats:
        lengths = [("LLEN", inbox_key(crawl)), ("LLEN", rejected_key(crawl))]
        stats, answers = await (await self._crawl(crawl)).stats_with(*lengths)
        # Other programs may have put something else there: see inbox.py.
        stats.inbox, stats.refused = (at if isinstance(at, int) else 0 for at in answers)
        return stats

    async def crawls(self) -> list[Stats]:
        found = []
        for name in await self._link.command("SMEMBERS", CRAWLS):
            try:
                found.append(await self.stats(name.decode()))
            except UnknownCrawl:
                continue
            except NewerFormat as error:  # Callers that look after all crawls go on with the rest.
                self._leave_out(name, error)
        return sorted(found, key=lambda stats: stats.created_at, reverse=True)

    async def find(self, crawl: str, entry: Entry) -> Record | None:
        return await find(self._link, (await self._crawl(crawl)).shard(entry.task.site), entry)

    async def find_others(
        self, crawl: str, site: str, is_wanted: Callable[[str], bool], limit: int
    ) -> list[Record]:
        shard = (await self._crawl(crawl)).shard(site)
        return await find_others(self._link, shard, site, is_wanted, limit)

    async def dead(
        self,
        crawl: str,
        limit: int,
        after: DeadPlace | None = None,
        which: DeadFilter = ALL_DEAD,
    ) -> list[Record]:
        return await list_dead(await self._crawl(crawl), limit, after, which)

    async def leased(self, crawl: str, limit: int) -> list[Leased]:
        return await leased(await self._crawl(crawl), limit)

    async def hosts(
        self, crawl: str, limit: int, order: HostOrder = HostOrder.BUSIEST
    ) -> list[Host]:
        on_redis = await self._crawl(crawl)
        found = list[Host]()
        for shard in on_redis.shards:
            found += await self._ranked(shard, limit, order)
        # Cut as Redis cuts each shard, ties by name from the end: so a longer list has every host
        # of a shorter one.
        found.sort(key=lambda host: host.host, reverse=True)
        found.sort(key=lambda host: _RANK[order](host)[0])
        return sorted(found[:limit], key=_RANK[order])

    async def _ranked(self, shard: Shard, limit: int, order: HostOrder) -> list[Host]:
        counts = await shard.counts()
        is_cancelled = counts["state"] == CrawlState.CANCELLED
        prefix = await shard.prefix()
        lowest = 0 if order is HostOrder.BUSIEST else 1
        key = f"{prefix}{_ORDERS[order]}"
        ranked = ("ZRANGE", key, "+inf", lowest, "BYSCORE", "REV", "LIMIT", 0, limit)
        names = await self._link.command(*ranked)
        pools = await self._link.command("SMEMBERS", f"{prefix}pools")
        if pools and order is HostOrder.BUSIEST:
            names = await self._with_lanes(prefix, names, limit)
        rows = await self._link.command("HMGET", f"{prefix}hosts", *names) if names else []
        found = [
            host_of(name.decode(), packed, ahead_of(counts), is_cancelled=is_cancelled)
            for name, packed in zip(names, rows, strict=True)
        ]
        for pool in pools if found and not is_cancelled else ():
            lanes = [pool + b" " + name for name in names]
            waiting = await self._link.command("HMGET", f"{prefix}hosts", *lanes)
            for host, packed in zip(found, waiting, strict=True):
                host.waiting += waiting_of(packed)
        await note_failures(self._link, prefix, found)
        return found

    async def _with_lanes(self, prefix: str, names: list[bytes], limit: int) -> list[bytes]:
        """Add to these hosts those whose lanes have the most work."""
        ranked = ("ZRANGE", f"{prefix}lane_load", "+inf", 0, "BYSCORE", "REV", "LIMIT", 0, limit)
        lanes = await self._link.command(*ranked)
        return list(dict.fromkeys([*names, *(lane.rpartition(b" ")[2] for lane in lanes)]))

    async def traps(self, crawl: str, limit: int) -> list[Trap]:
        found = list[Trap]()
        for shard in (await self._crawl(crawl)).shards:
            found += await traps_of(self._link, shard)
        return sorted(found, key=lambda trap: (-trap.kept_out, trap.host, trap.shape))[:limit]

    async def chains(self, crawl: str, limit: int) -> list[Chain]:
        found = list[Chain]()
        for shard in (await self._crawl(crawl)).shards:
            found += await chains_of(self._link, shard, limit)
        return sorted(found, key=lambda chain: (-chain.left, chain.name))[:limit]

    async def workers(self, crawl: str) -> list[Pulse]:
        home = (await self._crawl(crawl)).home
        counts = await home.counts()
        now, ahead_s = int(counts["now"]), ahead_of(counts)
        key = f"{await home.prefix()}workers"
        alive, silent = [], []
        for worker, value in sorted((await self._link.command("HGETALL", key)).items()):
            at, _, body = value.partition(b" ")
            if now - int(at) <= WORKER_SILENT_S * 1e6:
                pulse = _read_pulse(body)
                pulse.at = int(at) / 1e6 - ahead_s
                alive.append(pulse)
            else:
                silent.append(worker)
        if silent:
            await self._link.command("HDEL", key, *silent)
        return alive

    # Exits

    async def put_pool(self, rules: PoolRules, exits: Sequence[ExitEntry]) -> None:
        await self._exits.put(rules, exits)

    async def pools(self) -> list[PoolState]:
        return await self._exits.pools()

    async def exits(self, pool: str) -> list[Exit]:
        return await self._exits.of(pool)

    async def lanes(self, crawl: str, limit: int) -> list[LaneState]:
        home = (await self._crawl(crawl)).home
        if CrawlState((await home.counts())["state"]) is CrawlState.CANCELLED:
            return []
        return await self._exits.lanes(home, limit)

    async def accounts(self, group: str, *, jars: bool = False) -> list[Account]:
        return await self._accounts.of(group, jars=jars)

    async def hold(self, identity: str, host: str | None, seconds: float) -> Held | None:
        return await self._accounts.hold(identity, host, seconds)

    async def hold_on(self, held: Held, seconds: float) -> Held | None:
        return await self._accounts.hold_on(held, seconds)

    async def let_go(self, held: Held, report: IdentityReport) -> bool:
        return await self._accounts.let_go(held, report)

    async def close(self) -> None:
        await self._link.close()

    # Crawls and servers

    async def _crawl(self, name: str) -> RedisCrawl:
        """A crawl and its shards. If it does not exist, UnknownCrawl is raised here or when it is
        used."""
        if name not in self._crawls:
            shards = [self._shard(name, tag) for tag in await self._tags(name)]
            self._crawls[name] = RedisCrawl(name, shards)
        return self._crawls[name]

    async def _tags(self, crawl: str) -> list[str]:
        """The tags of a crawl's shards. Raises UnknownCrawl only in a cluster."""
        if not self._link.is_cluster:
            return tags(crawl, 1)
        stored = await self._link.command("GET", shards_key(crawl))
        if stored is None:
            raise UnknownCrawl(crawl)
        if stored == BY_EXITS.encode():
            return [tag_by_exits(crawl)]
        return tags(crawl, int(stored))

    def _shard(self, crawl: str, tag: str) -> Shard:
        def unknown() -> None:
            self._crawls.pop(crawl, None)  # It may be created again with other shards.

        told = self._note_new_server
        return Shard(self._link, crawl, tag, self._clock, told, unknown, self._carrier_setup)

    async def _make(self, crawl: str, rules: Rules) -> None:
        """Create the crawl, in state NEW, if it does not exist."""
        check_name(crawl)
        if self._link.is_cluster:
            self._crawls.pop(crawl, None)
            wanted = self._link.address.options.get("shards") or await self._link.masters()
            key = shards_key(crawl)
            by_exits = has_lanes(rules)
            await self._link.command("SET", key, BY_EXITS if by_exits else wanted, "NX")
            if by_exits and await self._link.command("GET", key) != BY_EXITS.encode():
                raise ConfigError(SPREAD.format(crawl))
        await self._link.command("SADD", CRAWLS, crawl)
        await (await self._crawl(crawl)).start("make", rules)

    async def _note_new_server(self) -> None:
        """Tell all crawls that a server did not know our scripts: it is not the one that they
        knew."""
        names = {name.decode() for name in await self._link.command("SMEMBERS", CRAWLS)}
        for name in names | set(self._crawls):
            try:
                shards = (await self._crawl(name)).shards
            except UnknownCrawl:
                continue
            for shard in shards:
                await shard.note_new_server()

    def _leave_out(self, name: bytes, error: NewerFormat) -> None:
        """Warn once that a crawl is left out of the list of all crawls."""
        if name not in self._left_out:
            self._left_out.add(name)
            log.warning("%s; it is left out", error)

    async def _warn_if_forgetful(self) -> None:
        if await self._link.is_forgetful():
            log.warning(
                "%s keeps no append-only file: if it restarts, this crawl is lost or set back"
                " (appendonly yes)",
                self._link.shown,
            )
