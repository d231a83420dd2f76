"""Divides the room of hosts between the worker that asks for tasks and the other workers."""

from __future__ import annotations

from collections.abc import Set

from shoal.core.sharing import AHEAD_PER_SHARE, WANT_S, Share, fair_share, share_of
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.shares import Claim
from shoal.frontier.sqlite.step import Step
from shoal.frontier.values import Ask, CrawlState, Holding

_NOTHING = Holding(0, 0)


class Sharing:
    """The shares of the asking worker: what it has of hosts, and what it may have from now on."""

    def __init__(self, current: Step, ask: Ask) -> None:
        self._current = current
        self._worker = ask.worker
        self._named: dict[str, HostSchedule] = {}
        self._holdings: dict[int, Holding] = {}
        self._told: dict[int, int] = {}
        self.shares = dict.fromkeys(ask.holdings, 0)
        """The shares that the worker is told, by host."""

    def settle_all(self, ask: Ask, limit: int) -> None:
        """Settle the shares of all hosts that the ask names. The worker can take `limit` tasks."""
        self._named = self._current.known_hosts(ask.holdings)
        for name, host in self._named.items():
            holding = self._holdings[host.id] = ask.holdings[name]
            wants = holding.unsent > 0 or (limit > 0 and self._has_tasks(host, 1))
            self.shares[name] = self._settle(host, wants=wants)

    def leave_idle(self, served: Set[str]) -> None:
        """Release the shares of hosts at which the worker has no tasks and was given none."""
        for name, host in self._named.items():
            if self.shares[name] and self._holdings[host.id] == _NOTHING and name not in served:
                self.shares[name] = self._settle(host, wants=False)

    def takes_part(self, host: HostSchedule, wanted: int, room: int) -> bool:
        """Whether the worker gets shared leases of the host: it wants more than there is room for.

        If one worker takes part, all that want something of the host do. Otherwise their leases
        could keep that one out for ever.
        """
        is_crowded = wanted > room and self._has_tasks(host, room + 1)
        return (is_crowded or host.sharers > 0) and self._current.may_share(host)

    def _has_tasks(self, host: HostSchedule, count: int) -> bool:
        """Whether at least `count` of its tasks wait, suspects excluded."""
        if host.waiting < count:
            return False
        (found,) = self._current.execute("count_tasks", host.id, count).fetchone()
        return bool(found >= count)

    def told(self, host: HostSchedule) -> int:
        """How many requests the worker may have in flight at a host that it shares."""
        if host.id not in self._told:
            return self._settle(host, wants=self._has_tasks(host, 1))
        return self._told[host.id]

    def ahead(self, host: HostSchedule) -> int:
        """How many more tasks of the host the worker may be given."""
        unsent = self._holdings.get(host.id, _NOTHING).unsent
        return self.told(host) * AHEAD_PER_SHARE - unsent

    def _settle(self, host: HostSchedule, *, wants: bool) -> int:
        """Divide the room again. The worker keeps its share until it asks again, or is gone."""
        current = self._current
        is_running = current.state is CrawlState.RUNNING
        wants = wants and is_running and current.may_share(host)
        in_flight = self._holdings.get(host.id, _NOTHING).in_flight
        target = self._target(host) if wants else 0
        share = share_of(target, self._left(host), in_flight)
        if current.state is not CrawlState.CANCELLED:
            current.shares.put(host, self._worker, self._claim(share, wants=wants))
        self._told[host.id] = share.told
        return share.told

    def _target(self, host: HostSchedule) -> int:
        current = self._current
        workers = sorted({*current.shares.of(host), self._worker})
        limit = host.limit(current.rules, current.now)
        return fair_share(limit, len(workers), workers.index(self._worker), current.now)

    def _left(self, host: HostSchedule) -> int:
        """How much of the host's room the others leave."""
        claims = self._current.shares.of(host)
        others = sum(claim.share for worker, claim in claims.items() if worker != self._worker)
        return host.limit(self._current.rules, self._current.now) - host.plain - others

    def _claim(self, share: Share, *, wants: bool) -> Claim | None:
        if share.counted:
            return Claim(share.counted, self._current.now + self._current.rules.lease_s)
        return Claim(0, self._current.now + WANT_S) if wants else None
