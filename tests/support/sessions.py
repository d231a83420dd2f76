"""For tests of identities: groups of accounts, tasks that use them, and a worker that can log
in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.identities import (
    Account,
    IdentityReport,
    LeasedIdentity,
    LoginChange,
    pool_of_session,
)
from shoal.frontier.port import Frontier, Held
from shoal.frontier.values import Entry, Lease, Verdict
from support.exits import DC, GOOD, LONG_S, PLENTY, RES, ExitClient, exits_of, put_pool, settle
from support.frontiers import CRAWL, HOST, Backend, entry

SHOP, FORUM = "shop", "forum"
GROUP, FORUM_GROUP = pool_of_session(SHOP), pool_of_session(FORUM)
ALICE, BOB, CAROL = "alice", "bob", "carol"
JAR = b"the cookies of a login"
AGENT = "Mozilla/5.0 (as it logged in)"
LOGIN_URL = f"http://{HOST}/login"
OUT = IdentityReport(LoginChange.OUT)
HOLD_S = 60.0


def identity(account: str, group: str = SHOP) -> str:
    return f"{group}#{account}"


async def put_group(frontier: Frontier, *accounts: str, group: str = SHOP, **rules: Any) -> None:
    """Put a group with these accounts. By default each has one request at a time, and the timeout
    of waiting tasks is so long that none starves."""
    told = PoolRules(
        name=pool_of_session(group), **{"concurrency": 1, "timeout_s": LONG_S, **rules}
    )
    names = [pool_of_session(identity(account, group)) for account in accounts]
    await frontier.put_pool(told, [ExitEntry(name) for name in names])


def with_session(session: str, each: Entry) -> Entry:
    """The same task with a session."""
    return Entry(each.fingerprint, replace(each.task, session=session))


def logged_in(address: str, session: str = SHOP, **fields: Any) -> Entry:
    """A task that needs an account."""
    return with_session(session, entry(address, **fields))


def session_pages(count: int, host: str = HOST, session: str = SHOP, **fields: Any) -> list[Entry]:
    """`count` tasks of one host that need an account. For another session, they are other tasks."""
    path = session.replace("#", "/")
    return [logged_in(f"{host}/{path}/{number}", session, **fields) for number in range(count)]


def login(jar: bytes | None = JAR) -> IdentityReport:
    """The report of a successful login."""
    return IdentityReport(LoginChange.IN, jar=jar, user_agent=AGENT, login_url=LOGIN_URL)


def failure(reason: str = "the password is wrong") -> IdentityReport:
    """The report of a failed login."""
    return IdentityReport(LoginChange.FAILED, reason=reason)


class SessionClient(ExitClient):
    """A worker that knows the passwords of accounts and the exits that they use."""

    async def begin(self, *entries: Entry, **rules: Any) -> None:
        """Start a crawl of tasks that need accounts, with leases that do not expire."""
        await super().begin(*entries, **{"sessions": (SHOP, FORUM), "max_losses": 99, **rules})

    async def said(
        self, lease: Lease, report: IdentityReport | None, verdict: Verdict = Verdict.RETURNED
    ) -> None:
        """End a try with this report on its identity, and a good one on its exit."""
        passage = GOOD if lease.lent is not None else None
        await self.end(lease, verdict, identity=report, passage=passage)

    async def log_in(self, *leases: Lease, jar: bytes | None = JAR) -> None:
        """Log in with identities that were leased for that, and return the tasks."""
        for lease in leases:
            assert not identity_of(lease).is_in
            await self.said(lease, login(jar))

    async def done(self, *leases: Lease, jar: bytes | None = None) -> None:
        """End these tries as done: their pages came, and were those of a logged-in client."""
        report = None if jar is None else IdentityReport(jar=jar)
        for lease in leases:
            await self.said(lease, report, Verdict.DONE)

    async def failed(self, *leases: Lease) -> None:
        """End these tries as failed logins."""
        for lease in leases:
            await self.said(lease, failure())

    async def log_all_in(self, backend: Backend, count: int) -> None:
        """Log in `count` accounts at once."""
        leases = await self.take(count)
        assert len(leases) == count
        await self.log_in(*leases)
        await settle(backend)

    async def hold(self, name: str = ALICE, seconds: float = HOLD_S) -> Held:
        """Hold an account of the shop, so that no worker gets it."""
        held = await self.frontier.hold(identity(name), HOST, seconds)
        assert held is not None, "somebody has it"
        return held

    async def told_by_hand(self, report: IdentityReport, name: str = ALICE) -> None:
        """Hold an account, and let it go with this report, as an operator does."""
        assert await self.frontier.let_go(await self.hold(name), report)

    async def account(self, name: str = ALICE, group: str = SHOP) -> Account:
        wanted = identity(name, group)
        accounts = await self.frontier.accounts(group, jars=True)
        (found,) = [each for each in accounts if each.name == wanted]
        return found

    async def assert_all_free(self, *pools: str) -> None:
        """Assert that nothing in these pools is leased, and that no worker uses an account."""
        await self.assert_free(*(pools or (GROUP,)))
        for account in await self.frontier.accounts(SHOP):
            assert account.state.worker == ""


def session_client(
    backend: Backend,
    worker: str = "worker",
    crawl: str = CRAWL,
    pools: tuple[str, ...] = (GROUP, FORUM_GROUP, DC, RES),
    slots: int = PLENTY,
) -> SessionClient:
    """A worker that uses the backend's first frontier."""
    return SessionClient(backend.frontier, worker, crawl, pools, slots)


def another_session_client(
    backend: Backend,
    worker: str = "another",
    crawl: str = CRAWL,
    pools: tuple[str, ...] = (GROUP, FORUM_GROUP, DC, RES),
) -> SessionClient:
    """A worker that uses a frontier of its own."""
    return SessionClient(backend.open_another(), worker, crawl, pools)


def identity_of(lease: Lease) -> LeasedIdentity:
    assert lease.identity is not None
    return lease.identity


def names_of(leases: Sequence[Lease]) -> list[str]:
    """The account of each lease."""
    whole = [lease.identity.name if lease.identity else "nobody" for lease in leases]
    return [name.partition("#")[2] or name for name in whole]


async def begin_by_exits(
    backend: Backend, *accounts: str, exits: int = 2, **pool: float | bool
) -> SessionClient:
    """Start a crawl whose accounts use exits."""
    client = session_client(backend)
    await put_pool(client.frontier, exits, RES, timeout_s=LONG_S, **pool)
    await put_group(client.frontier, *(accounts or (ALICE,)), through=RES)
    await client.begin(*session_pages(20))
    return client


async def logged_in_by(backend: Backend, client: SessionClient) -> str:
    """Log in the only account, and return the exit that it is bound to."""
    (lease,) = await client.take()
    await client.log_in(lease)
    await settle(backend)
    (bound,) = exits_of([lease])
    return bound


async def next_of(client: SessionClient) -> Lease:
    """Lease everything available now, which must be one task."""
    (lease,) = await client.take()
    return lease
