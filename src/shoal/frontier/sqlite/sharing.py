"""The part of a worker that asks for work in the hosts that it shares with others."""

from __future__ import annotations

from shoal.core.sharing import AHEAD_PER_SHARE, WANT_S, Share, fair_share, share_of
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.shares import Claim
from shoal.frontier.sqlite.step import Step
from shoal.frontier.values import Ask, CrawlState, Holding

_NOTHING = Holding(0, 0)


class Sharing:
    """What the worker has of hosts, and what it is told to have from now on."""

    def __init__(self, current: Step, ask: Ask) -> None:
        self._current = current
        self._worker = ask.worker
        self.shares = dict.fromkeys(ask.holdings, 0)
        known = current.known_hosts(ask.holdings) if ask.holdings else {}
        self._names = {host.id: name for name, host in known.items()}
        self._holdings = {host.id: ask.holdings[name] for name, host in known.items()}
        self._unsettled = {host.id: host for host in known.values()}

    def takes_part(self, host: HostSchedule, wanted: int) -> bool:
        """Whether it shares the host with others: it wants more than there is room for. Where one
        does so, all who want something do, or a lease after the other would keep it out."""
        if not self._current.may_share(host):
            return False
        if host.id in self._holdings or self._current.shares.of(host):
            return True
        return min(wanted, host.waiting) > self._current.room(host)

    def ahead(self, host: HostSchedule, share: int) -> int:
        """How many more tasks it may be handed out ahead."""
        return share * AHEAD_PER_SHARE - self.unsent(host)

    def unsent(self, host: HostSchedule) -> int:
        """What it has of the host's tasks and has not sent."""
        return self._holdings.get(host.id, _NOTHING).unsent

    def left(self, host: HostSchedule) -> int:
        """What others leave of the host's room."""
        others = self._current.shares.taken(host) - self._own(host)
        limit = host.limit(self._current.rules, self._current.now)
        return max(limit - host.plain - others, 0)

    def _own(self, host: HostSchedule) -> int:
        claim = self._current.shares.of(host).get(self._worker)
        return claim.share if claim else 0

    def settle(self, host: HostSchedule, *, wants: bool) -> int:
        """How many requests it may have in flight from now on; what that takes of the room is the
        worker's until it asks again, or is gone."""
        wants = wants and self._current.may_share(host)
        holding = self._holdings.get(host.id, _NOTHING)
        target = self._target(host) if wants else 0
        share = share_of(target, self.left(host), holding.in_flight)
        if self._current.state is not CrawlState.CANCELLED:
            self._current.shares.put(host, self._worker, self._claim(share, wants=wants))
        self._unsettled.pop(host.id, None)
        if host.id in self._names:
            self.shares[self._names[host.id]] = share.told
        return share.told

    def _target(self, host: HostSchedule) -> int:
        current = self._current
        workers = sorted({*current.shares.of(host), self._worker})
        limit = host.limit(current.rules, current.now)
        return fair_share(limit, len(workers), workers.index(self._worker), current.now)

    def _claim(self, share: Share, *, wants: bool) -> Claim | None:
        if share.counted:
            return Claim(share.counted, self._current.now + self._current.rules.lease_s)
        return Claim(0, self._current.now + WANT_S) if wants else None

    def settle_rest(self, room: int) -> None:
        """Settle the hosts that the ask named and that were not served. Some have tasks that the
        worker has room for: their turn comes later."""
        for host in list(self._unsettled.values()):
            is_running = self._current.state is CrawlState.RUNNING
            wants = self.unsent(host) > 0 or (room > 0 and self._has_tasks(host))
            self.settle(host, wants=is_running and wants)

    def _has_tasks(self, host: HostSchedule) -> bool:
        if host.waiting <= 0:
            return False
        return bool(self._current.execute("has_tasks", host.id).fetchone()[0])
