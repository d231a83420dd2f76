"""Visits with an identity: whether this worker may use it, its cookies, and the end of its
session."""

from __future__ import annotations

import time

from msgspec.structs import replace

from shoal.core.blocks import leads_to_login
from shoal.core.cookies import EMPTY
from shoal.core.failures import FailureKind
from shoal.core.identities import NO_SESSION, IdentityReport, LeasedIdentity, LoginChange
from shoal.core.identity_policy import MAX_EXPIRED
from shoal.core.policy import REDIRECT_STATUSES
from shoal.core.suffixes import registered
from shoal.core.task import DIRECT, Task
from shoal.core.urls import join, parse
from shoal.errors import (
    BadUrl,
    OwnFault,
    SessionExpired,
    Unparsable,
)
from shoal.fetch.port import Fetcher, Response
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.runtime.patience import jitter
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.worker.report import Report, give_up, note_identity
from shoal.worker.visits.identities import LiveJars
from shoal.worker.visits.identity_logins import IdentityLogins
from shoal.worker.visits.outcomes import Judge, one_line
from shoal.worker.visits.own_sessions import OwnSessions
from shoal.worker.visits.proofs import Proof, proof_of
from shoal.worker.visits.sending import Routes, no_routes, send

UNAUTHORISED = 401
ELSEWHERE = f"a site that the account is a stranger to, which needs session={NO_SESSION!r}"


class IdentityVisits:
    """Handles identities for a visitor, under the rules of a crawl."""

    def __init__(
        self,
        sessions: OwnSessions,
        jars: LiveJars,
        logins: IdentityLogins,
        spider: Spider,
        fetcher: Fetcher,
        judge: Judge,
        routes: Routes = no_routes,
        pool: str | None = None,
    ) -> None:
        """`pool` is the crawl's own pool, for groups that name none."""
        self.logins = logins
        """Logs identities in."""
        self._sessions = sessions
        self._jars = jars
        self._spider = spider
        self._fetcher = fetcher
        self._judge = judge
        self._routes = routes
        self._pool = pool
        self._proofs: dict[str, Proof | None] = {}

    def refusal(self, lease: Lease, identity: LeasedIdentity) -> Report | None:
        """Return the report of a visit that cannot be made here. None: it can.

        No request of a group that goes by exits leaves without an exit, whatever the frontier
        says.
        """
        if self._sessions.account(identity.name) is None:
            return give_up(lease, sent=False)
        pool = self._sessions.table(identity.name).pool or self._pool or DIRECT
        if lease.lent is None and pool != DIRECT:
            reason = f"no exit of pool {pool} was lent for it"
            outcome = self._judge.failed(
                lease, reason, jitter(), kind=FailureKind.EXIT, retryable=True, sent=False
            )
            note_identity(outcome)
            return Report(outcome)
        if identity.is_in and self._jars.of(identity) is None:
            return Report(logged_out(lease, "its cookies cannot be read", sent=False))
        return None

    async def send(self, lease: Lease, identity: LeasedIdentity, task: Task, by: float) -> Response:
        """Send the request for a page with the identity's cookies: see `sending.send`."""
        live = self._jars.of(identity)
        if live is None:
            raise OwnFault("its cookies cannot be read")
        lease.cookies = live.jar  # What was sent, for code that asks whether the answer changes it.
        cookies = live.jar.header(task.url, time.time())
        response = await send(
            self._fetcher, lease, task, by, self._routes, cookies, identity.user_agent
        )
        live.note(response)
        return response

    def note(self, outcome: Outcome, identity: LeasedIdentity) -> None:
        """Add the cookies of the identity to an outcome, if they have changed."""
        if (kept := self._jars.unreported(identity)) is not None:
            outcome.identity = replace(outcome.identity or IdentityReport(), jar=kept)

    # The end of a session

    def end_of(self, lease: Lease, identity: LeasedIdentity, response: Response) -> str:
        """Return how the status and headers of an answer show that its identity is logged out.
        Empty: they do not."""
        if response.status == UNAUTHORISED:
            return f"HTTP {UNAUTHORISED}"
        location = response.headers.get("Location")
        if response.status not in REDIRECT_STATUSES or not location:
            return ""
        here, logins = lease.task.url, self._login_urls(identity)
        if leads_to_login(here, location) or _is_one_of(location, here, logins):
            return f"HTTP {response.status} to the login"
        return ""

    def prove(self, page: Page) -> None:
        """Check the proof that an identity is logged in.

        Raises SessionExpired for a page without the proof, and whatever the spider's own
        `logged_in` raises. A page that cannot be parsed passes: its handler finds out.
        """
        group = (page.session or "").partition("#")[0]
        if group not in self._proofs:
            self._proofs[group] = proof_of(self._spider, self._sessions.table(group))
        proof = self._proofs[group]
        try:
            if proof is not None and page.is_html and not proof(page):
                raise SessionExpired("a page without the proof of a login")
        except Unparsable:
            return

    def ended(self, lease: Lease, why: str) -> Outcome:
        """Return the outcome of an answer that shows no login. If the site cannot know the
        identity, that says nothing about the identity: no login would change the page, so its task
        dies."""
        identity = lease.identity
        if identity is not None and self._is_elsewhere(lease, identity):
            reason = one_line(f"{ELSEWHERE}: {why}")
            kind = FailureKind.LOGIN
            return Outcome(lease=lease, verdict=Verdict.DEAD, kind=kind, reason=reason)
        return logged_out(lease, why)

    def _is_elsewhere(self, lease: Lease, identity: LeasedIdentity) -> bool:
        """Whether a page is not of a site where the identity logs in, and was sent none of its
        cookies."""
        now, jar, logins = time.time(), lease.cookies or EMPTY, self._login_urls(identity)
        if all(cookie.is_over(now) for cookie in jar.cookies) or not logins:
            return False
        sites = {registered(parse(url).hostname) for url in logins}
        url = lease.task.url
        return registered(parse(url).hostname) not in sites and not jar.header(url, now)

    def _login_urls(self, identity: LeasedIdentity) -> list[str]:
        table = self._sessions.table(identity.name)
        known = (identity.login_url, table.login_url, self._spider.login_url)
        return [url for url in known if url]


def logged_out(lease: Lease, why: str, *, sent: bool = True) -> Outcome:
    """Return the outcome of a lease whose identity was found to be logged out: its task goes back,
    at most MAX_EXPIRED times in a row, and then dies."""
    expired = lease.identity.expired if lease.identity is not None else 0
    said = IdentityReport(LoginChange.OUT)
    if expired >= MAX_EXPIRED:
        reason = one_line(f"its session had ended, {expired + 1} times in a row: {why}")
        return Outcome(
            lease=lease,
            verdict=Verdict.DEAD,
            kind=FailureKind.LOGIN,
            reason=reason,
            sent=sent,
            identity=said,
        )
    reason = one_line(f"its session had ended: {why}")
    return Outcome(lease=lease, verdict=Verdict.RETURNED, reason=reason, sent=sent, identity=said)


def _is_one_of(location: str, here: str, logins: list[str]) -> bool:
    """Whether a redirect leads to one of the login addresses and does not come from the same
    one."""
    try:
        base = parse(here)
        target = parse(join(base, location))
    except BadUrl:
        return False
    places = {(place.host, place.pathname) for place in map(parse, logins)}
    return (target.host, target.pathname) in places - {(base.host, base.pathname)}
