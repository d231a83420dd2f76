"""Forecasts how long a crawl takes with another number of workers, another rate, more exits or
faster stores. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import ceil, inf

import msgspec

from shoal.core.ledger import Cause
from shoal.core.policy import Rate
from shoal.insight.advise.fluid import Capacity, Drained, Queue, drain
from shoal.insight.advise.seen import FleetSeen
from shoal.insight.advise.situation import Situation
from shoal.insight.advise.work_left import HostWork, PoolWork, turn_s

MAX_WORKERS = 1000
"""Never advise more workers than this."""
NEAR = 1.05
"""A time that exceeds the best one by no more than this factor is as good."""
FELT_SHARE = {Cause.STORES: 0.1, Cause.FRONTIER: 0.3}
"""Stores and frontier count as a limit if slots wait for them for this share of their time..."""
BUSY = 0.5
"""... or if workers are busy with them for this share of theirs. Below that, how much they could do
is unknown. Also the least use of cores that says how much the cores could do."""
MEMORY_USE = 0.8
"""The share of a machine's memory that workers may use. The rest is a reserve, as pages differ in
size."""
COMMIT_WAIT_S = 0.02
"""About how long a page waits for others before it is committed."""
LEAST_HOLD_S = 0.001


class Limit(StrEnum):
    """What keeps a crawl from fetching more pages per second."""

    HOSTS = "hosts"
    CHAINS = "chains"
    EXITS = "exits"
    ACCOUNTS = "accounts"
    SLOTS = "slots"
    CPU = "cpu"
    """The workers' main threads."""
    CORES = "cores"
    MEMORY = "memory"
    NETWORK = "network"
    STORES = "stores"
    FRONTIER = "frontier"
    WORK = "work"
    """No page is left that could be fetched."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which a crawl could go on."""

    workers: int
    rate: Rate
    room: int
    """Requests in flight per host."""
    slots: float
    """Slots per worker."""
    are_machines_fixed: bool = False
    """Whether more workers have to share the present machines."""
    stores: float = 1.0
    """How many times as fast results and archive are as now."""
    exits: float = 1.0
    """How many times as many exits and accounts there are as now."""
    machine_bytes_per_s: float = inf
    """The bytes per second that the network of one machine carries."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl would go under a plan."""

    plan: Plan
    seconds: float
    """The time until the crawl is done."""
    per_s: float
    """Pages per second at the beginning."""
    limit: Limit


def plan_now(situation: Situation, fleet: FleetSeen) -> Plan:
    """The crawl as it is."""
    return Plan(workers=fleet.workers, rate=situation.rate, room=situation.room, slots=fleet.slots)


class Model:
    """Forecasts plans, from a crawl and its fleet as they are now.

    Measured speeds are below the theoretical ones because turns come a little late. So every
    forecast is slowed down by the factor by which the crawl is now slower than its own forecast.
    The measured speed is that of the last minute, or of the last seconds if they were faster:
    workers may have started within the minute.
    """

    def __init__(self, situation: Situation, fleet: FleetSeen, near_s: float = 0.0) -> None:
        """`near_s`: a time that exceeds the best one by no more than this is as good, too."""
        self.situation = situation
        self.fleet = fleet
        self._near_s = near_s
        self._pace = self._chain_pace = 1.0
        now = self.forecast(plan_now(situation, fleet))
        if now.per_s > 0:
            seen = max(fleet.per_s, situation.per_s) / now.per_s
            self._pace = min(max(seen, 0.5), 1.0)
            if now.limit is Limit.CHAINS:  # An idle worker commits a page without waiting.
                self._chain_pace = min(max(seen, 1.0), 2.0)

    def forecast(self, plan: Plan) -> Forecast:
        """How the crawl goes under a plan."""
        queues = self.queues(plan)
        caps = dict(_caps(self.fleet, plan))
        tightest = min(caps, key=lambda limit: caps[limit])
        workers = _workers(self.fleet, plan)
        slots = workers * plan.slots * self.fleet.slots_used
        drained = drain([queue for queue, _ in queues], Capacity(slots, caps[tightest]))
        limit = _limit(drained, queues, tightest, caps[tightest])
        return Forecast(
            plan=plan,
            seconds=drained.seconds / self._pace,
            per_s=drained.per_s * self._pace,
            limit=Limit.MEMORY if limit is Limit.SLOTS and workers < plan.workers else limit,
        )

    def fewest(self, plan: Plan, within_s: float) -> int | None:
        """The fewest workers with which the plan takes no longer than this. None if no number of
        workers is enough."""
        low, high = 1, self._enough(plan)
        if self._with(plan, high).seconds > within_s:
            return None
        while low < high:
            middle = (low + high) // 2
            if self._with(plan, middle).seconds <= within_s:
                high = middle
            else:
                low = middle + 1
        return low

    def best(self, plan: Plan) -> Forecast:
        """The forecast with the fewest workers that are about as fast as any number."""
        best_s = self.most(plan).seconds
        near_s = max(best_s * NEAR, best_s + self._near_s)
        return self._with(plan, self.fewest(plan, near_s) or 1)

    def most(self, plan: Plan) -> Forecast:
        """The forecast with so many workers that more would change nothing. Its limit is one that
        workers cannot remove."""
        return self._with(plan, self._enough(plan))

    def _with(self, plan: Plan, workers: int) -> Forecast:
        return self.forecast(msgspec.structs.replace(plan, workers=workers))

    def _enough(self, plan: Plan) -> int:
        """A number of workers beyond which more change nothing: their slots and CPU time are no
        limit any more."""
        queues = [queue for queue, _ in self.queues(plan)]
        per_s = sum(queue.per_s for queue in queues)
        one = dict(_caps(self.fleet, msgspec.structs.replace(plan, workers=1)))
        caps = dict(_caps(self.fleet, msgspec.structs.replace(plan, workers=MAX_WORKERS)))
        per_s = min(per_s, min(caps.values()))
        slots = sum(queue.per_s * queue.hold_s for queue in queues)
        by_slots = slots / (plan.slots * self.fleet.slots_used)
        by_speed = per_s / min(one.values())
        return min(max(ceil(max(by_slots, by_speed)), 1), MAX_WORKERS)

    def queues(self, plan: Plan) -> list[tuple[Queue, Limit]]:
        """All queues with pages, each with the limit that its own pace stands for."""
        return [(queue, limit) for queue, limit in self._queues(plan) if queue.pages > 0]

    def _queues(self, plan: Plan) -> Iterator[tuple[Queue, Limit]]:
        situation = self.situation
        for host in situation.hosts:
            yield self._host(host, plan), Limit.HOSTS
        turns_per_s = sum(1 / turn for host in situation.hosts if (turn := turn_s(host, plan.rate)))
        are_paced = bool(situation.hosts) and all(turn_s(h, plan.rate) for h in situation.hosts)
        # The frontier does not tell which hosts chains are at: spread their turns evenly.
        turn = len(situation.chains) / turns_per_s if are_paced else 0.0
        hold_s = self._hold_s(self.fleet.latency_s)
        cycle_s = max((hold_s + self.fleet.commit_s + COMMIT_WAIT_S) / self._chain_pace, hold_s)
        for chain in situation.chains:
            yield Queue(chain.name, chain.left, cycle_s, turn, 1.0), Limit.CHAINS
        for pool in situation.pools:
            limit = Limit.ACCOUNTS if pool.name.startswith("@") else Limit.EXITS
            yield self._pool(pool, plan), limit
        if situation.others:
            yield self._others(plan), Limit.HOSTS

    def _host(self, host: HostWork, plan: Plan) -> Queue:
        hold_s = self._hold_s(host.latency_s)
        return Queue(host.name, host.pages, hold_s, turn_s(host, plan.rate), plan.room)

    def _pool(self, pool: PoolWork, plan: Plan) -> Queue:
        usable = max(pool.usable * plan.exits, 0.01)  # Not 0: an exit may come back.
        known = {host.name: host for host in self.situation.hosts}
        hosts = [known.get(name, HostWork(name, 0)) for name in pool.hosts]
        host_turn_s = min(turn_s(host, plan.rate) for host in hosts) / len(hosts)
        return Queue(
            pool.name,
            pool.pages,
            self._hold_s(self.fleet.latency_s),
            max(pool.turn_s / usable, host_turn_s),
            min(usable * pool.at_once, plan.room * len(hosts)),
        )

    def _others(self, plan: Plan) -> Queue:
        """The hosts that are not listed, as one queue. As many as if each had as many pages left as
        the listed host with the fewest: none of them has more."""
        hosts = self.situation.hosts
        most = max(min((host.pages for host in hosts), default=1.0), 1.0)
        number = ceil(self.situation.others / most)
        hold_s = self._hold_s(self.fleet.latency_s)
        turn = turn_s(HostWork("", 0), plan.rate) / number
        return Queue("others", self.situation.others, hold_s, turn, plan.room * number)

    def _hold_s(self, latency_s: float) -> float:
        """How long a page keeps a slot, at a host with this latency (0: not known)."""
        fleet = self.fleet
        own_s = max(fleet.hold_s - fleet.latency_s, 0.0)
        return max((latency_s or fleet.latency_s) - fleet.lag_s, LEAST_HOLD_S) + own_s


def _workers(fleet: FleetSeen, plan: Plan) -> float:
    """How many workers of the plan can run. On fixed machines, memory may limit their number, but
    never below that of the workers that run now."""
    if not plan.are_machines_fixed or not fleet.memory_bytes or not fleet.worker_bytes:
        return plan.workers
    room = fleet.memory_bytes * MEMORY_USE // fleet.worker_bytes
    return min(plan.workers, max(room, fleet.workers))


def _caps(fleet: FleetSeen, plan: Plan) -> Iterator[tuple[Limit, float]]:
    """The most pages per second that a fleet can do, for each limit that applies to it."""
    workers = _workers(fleet, plan)
    each_per_s = fleet.per_s / fleet.workers
    limit = Limit.MEMORY if workers < plan.workers else Limit.CPU
    yield limit, workers * each_per_s / fleet.main_use if fleet.main_use else inf
    # If other programs keep the cores busy, how many workers they could bear is unknown.
    are_cores_short = min(fleet.machine_use, fleet.main_use) >= BUSY
    if plan.are_machines_fixed and are_cores_short:
        yield Limit.CORES, fleet.per_s / fleet.machine_use
    machines = fleet.machines if plan.are_machines_fixed else max(plan.workers, fleet.machines)
    if fleet.page_bytes and plan.machine_bytes_per_s < inf:
        yield Limit.NETWORK, machines * plan.machine_bytes_per_s / fleet.page_bytes
    # More workers do not make stores faster. Fewer do use less of them, as each worker saves one
    # batch after the other.
    most_per_s = min(workers / fleet.workers, 1.0) * fleet.per_s
    if use := _felt(fleet, Cause.STORES, fleet.save_use):
        yield Limit.STORES, most_per_s / use * plan.stores
    if use := _felt(fleet, Cause.FRONTIER, fleet.finish_use):
        yield Limit.FRONTIER, most_per_s / use


def _felt(fleet: FleetSeen, cause: Cause, use: float) -> float:
    """The share of a store's capacity that is in use. 0: too little to tell."""
    if fleet.is_cpu_short:  # A busy main thread sees every answer late: its figures say nothing.
        return 0.0
    if use >= BUSY:
        return use
    return 1.0 if fleet.share(cause) >= FELT_SHARE[cause] else 0.0


def _limit(
    drained: Drained, queues: Sequence[tuple[Queue, Limit]], tightest: Limit, per_s: float
) -> Limit:
    """What limits the speed at the beginning. If it is the queues, the limit of the longest one."""
    if not queues:
        return Limit.WORK
    if drained.is_fleet_short:
        return tightest if drained.per_s >= per_s * 0.98 else Limit.SLOTS
    return max(queues, key=lambda at: at[0].floor_s)[1]
