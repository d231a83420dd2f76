"""A worker that keeps to its shares of hosts, for tests: it sends all that it may, but no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from shoal.frontier.values import Grant, Holding, Lease, Outcome, Verdict
from support.frontiers import HOST, Client, outcome


class Sharer:
    """A worker's shares and leases, by host."""

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        self.unsent: defaultdict[str, list[Lease]] = defaultdict(list)
        self.sent: defaultdict[str, list[Lease]] = defaultdict(list)
        """The shared leases in flight."""
        self.said: dict[str, Holding] = {}
        """The holdings that it last reported."""

    def holdings(self) -> dict[str, Holding]:
        """The holdings that the worker reports."""
        hosts = {*self.told, *self.unsent, *self.sent}
        self.said = {host: Holding(len(self.sent[host]), len(self.unsent[host])) for host in hosts}
        return self.said

    def granted(self, grant: Grant) -> list[Lease]:
        """Take new shares and leases, send, and return the leases that must be given back.

        A host without a share is still reported until nothing is in flight there.
        """
        for lease in grant.leases:
            if lease.shared:
                self.unsent[lease.task.site].append(lease)
        self.told = {
            host: share
            for host, share in grant.shares.items()
            if share or (host in self.said and self.said[host].in_flight)
        }
        back = [
            lease
            for host in [*self.unsent]
            if not self.told.get(host)
            for lease in self.unsent[host]
        ]
        self.drop(back)
        self.send()
        return back

    def send(self) -> None:
        """Send as many unsent requests as the shares allow."""
        for host, share in self.told.items():
            while self.unsent[host] and len(self.sent[host]) < share:
                self.sent[host].append(self.unsent[host].pop(0))
        self._forget_hosts()

    def answer(self, host: str, count: int | None = None) -> list[Lease]:
        """Take the oldest `count` requests, or all, as answered by the host. Unsent ones follow."""
        answered, self.sent[host] = self.sent[host][:count], self.sent[host][count:]
        if count is None:
            self.sent[host] = []
        self.send()
        return answered

    def drop(self, leases: Iterable[Lease]) -> None:
        """Forget these leases."""
        gone = {lease.token for lease in leases}
        for held in (self.unsent, self.sent):
            for host, ours in held.items():
                held[host] = [lease for lease in ours if lease.token not in gone]
        self._forget_hosts()

    def leave(self, host: str) -> None:
        """Forget everything of this host."""
        for held in (self.told, self.unsent, self.sent):
            held.pop(host, None)

    def may_have(self, host: str) -> int:
        """The most requests that the worker may have in flight until it asks again."""
        return max(self.told.get(host, 0), len(self.sent.get(host, ())))

    def _forget_hosts(self) -> None:
        for held in (self.unsent, self.sent):
            for host in [host for host, leases in held.items() if not leases]:
                del held[host]


class SharingClient(Sharer):
    """Such a worker on a crawl. Answered requests are finished with its next ask."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self.plain: list[Lease] = []
        self._ended: list[Outcome] = []

    async def ask(self, limit: int = 99) -> Grant:
        """Finish answered requests, ask for more leases and send. Leases that may not be sent are
        given back with the next ask."""
        ended, self._ended = self._ended, []
        said = self.holdings()
        stale, grant = await self.client.exchange(*ended, limit=limit, holdings=said)
        assert not stale
        assert said.keys() <= grant.shares.keys(), "it is told of every host it named"
        self.plain += [lease for lease in grant.leases if not lease.shared]
        back = self.granted(grant)
        self._ended += [outcome(lease, Verdict.RETURNED, sent=False) for lease in back]
        return grant

    def answer(self, host: str = HOST, count: int | None = None) -> list[Lease]:
        answered = super().answer(host, count)
        self._ended += map(outcome, answered)
        return answered

    async def end_plain(self) -> None:
        """Finish the leases that belong to no share."""
        ended, self.plain = self.plain, []
        await self.client.finish(*map(outcome, ended))

    async def give_up(self) -> None:
        """End the worker properly: answer or give back everything, and give up all shares."""
        self.told = dict.fromkeys(self.told, 0)
        for host in [*self.sent]:
            self.answer(host)
        unsent = [lease for leases in self.unsent.values() for lease in leases]
        self._ended += [outcome(lease, Verdict.RETURNED, sent=False) for lease in unsent]
        self.drop(unsent)
        await self.ask(0)
        assert not self.told

    def in_flight(self, host: str = HOST) -> int:
        """The most requests that the worker may have in flight until it asks again, including those
        that belong to no share."""
        return self.may_have(host) + sum(lease.task.site == host for lease in self.plain)
