"""SQLite and Redis, step by step through the same random lives of crawls with accounts: what one
lends, and makes of a login, the other does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from backends.frontier.test_frontier_same_exits import SameExits, some_crawl
from shoal.core.exits import PoolRules
from shoal.core.identities import IdentityReport, LeasedIdentity
from shoal.frontier.port import Frontier, Held
from shoal.frontier.values import Ask, Entry, Lease
from support.exit_lives import CRAWLS, POOLS, entries_of, exit_counts
from support.redis_servers import RedisServer
from support.session_lives import (
    ACCOUNTS,
    WITH_ACCOUNTS,
    accounts_of,
    groups,
    reports,
    rules_with_accounts,
    some_reports,
    ways,
)
from support.sessions import GROUP, SHOP, identity
from support.state_machines import lives

some_account = st.sampled_from([identity(name) for name in ACCOUNTS])


class SameSessions(SameExits):
    """Drives both, and compares all they say."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[IdentityReport | None] = [None]
        self.holds: dict[tuple[Frontier, str], Held] = {}

    def entries(self, crawl: str) -> list[Entry]:
        return WITH_ACCOUNTS[crawl]

    @initialize(data=st.data(), said=some_reports)
    def begin(self, data: st.DataObject, said: list[IdentityReport | None]) -> None:
        self.reports = said
        self.put_pool(data)
        self.put_group(data)
        for crawl in CRAWLS:
            self.start(crawl, data)
            self.add(crawl, list(range(8)))

    @rule(data=st.data())
    def put_pool(self, data: st.DataObject) -> None:
        rules: PoolRules = data.draw(ways)
        exits = entries_of(rules.name, data.draw(exit_counts), is_mixed=False)
        self.both(lambda frontier: frontier.put_pool(rules, exits))

    @rule(data=st.data())
    def put_group(self, data: st.DataObject) -> None:
        rules: PoolRules = data.draw(groups)
        accounts = accounts_of(data.draw(st.sampled_from([0, 1, 2, 3, 3])))
        self.both(lambda frontier: frontier.put_pool(rules, accounts))

    @rule(crawl=some_crawl, data=st.data())
    def start(self, crawl: str, data: st.DataObject) -> None:
        rules = data.draw(rules_with_accounts)
        self.both(lambda frontier: frontier.start(crawl, rules))

    def asked(self, worker: str, limit: int, pools: tuple[str, ...] = POOLS) -> Ask:
        return Ask(worker, limit, pools=(GROUP, *pools), slots=limit)

    @rule(said=some_reports)
    def say_other_things(self, said: list[IdentityReport | None]) -> None:
        """Of the identities of tries that end from now on."""
        self.reports = said

    def fitting(self, lease: Lease, end: dict[str, Any]) -> dict[str, Any]:
        number = lease.task.priority + len(self.pairs)
        report = self.reports[number % len(self.reports)]
        return super().fitting(lease, end) | {"identity": report}

    @rule(name=some_account, host=some_crawl, seconds=st.sampled_from([3.3, 333.3]))
    def hold(self, name: str, host: str, seconds: float) -> None:
        async def held(frontier: Frontier) -> Held | None:
            found = await frontier.hold(name, f"{host}.example", seconds)
            return self.note_hold(frontier, name, found)

        self.same(held)

    @rule(name=some_account, seconds=st.sampled_from([3.3, 333.3]))
    def hold_on(self, name: str, seconds: float) -> None:
        async def held(frontier: Frontier) -> Held | None:
            found = await frontier.hold_on(self.hold_of(frontier, name), seconds)
            return self.note_hold(frontier, name, found)

        self.same(held)

    @rule(name=some_account, report=reports)
    def let_go(self, name: str, report: IdentityReport) -> None:
        self.same(lambda frontier: frontier.let_go(self.hold_of(frontier, name), report))

    def note_hold(self, frontier: Frontier, name: str, held: Held | None) -> Held | None:
        """Each frontier has tokens of its own."""
        if held is not None:
            self.holds[frontier, name] = held
        return held

    def hold_of(self, frontier: Frontier, name: str) -> Held:
        """The last one of an account, over or not; or one that never was."""
        return self.holds.get((frontier, name)) or Held(LeasedIdentity(name))

    @rule(crawl=some_crawl)
    def turn(self, crawl: str) -> None:
        lent = [pair[1].lent for pair in self.pairs if pair[0] == crawl]
        way = lent[-1] if lent else None
        self.same(lambda frontier: frontier.turn(crawl, f"{crawl}.example", way))

    @invariant()
    def accounts_are_the_same(self) -> None:
        self.same(lambda frontier: frontier.accounts(SHOP, jars=True))


@pytest.fixture
def one_server(redis_server: RedisServer) -> None:
    SameSessions.servers = redis_server


TestSameSessions = pytest.mark.usefixtures("one_server")(
    lives(SameSessions, 20, steps=25, is_slow=True)
)
