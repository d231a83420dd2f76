"""Logins in place of pages: what a lease is used for when its identity is logged out."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

from shoal.core.exits import Lent
from shoal.core.failures import FailureKind
from shoal.core.identities import IdentityReport, LeasedIdentity, LoginChange
from shoal.errors import LoginFailed, OwnFault, UnknownCrawl
from shoal.fetch.port import Fetcher, Response
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.runtime.patience import jitter
from shoal.spider.spider import Spider
from shoal.worker.report import Report, give_back, note_identity, page_log
from shoal.worker.visits.identities import LiveJars
from shoal.worker.visits.login_requests import Login, LoginTrouble, NoTurn, Turns
from shoal.worker.visits.logins import log_in
from shoal.worker.visits.outcomes import Judge, note_answer, one_line
from shoal.worker.visits.own_sessions import OwnSessions
from shoal.worker.visits.passages import is_of_exit, note_passage
from shoal.worker.visits.sending import Routes, no_routes, route_of

AskTurn = Callable[[Lent | None, str], Awaitable[float]]
"""`WorkSource.turn` of the crawl, for an exit and a host."""

log = logging.getLogger("shoal")


class IdentityLogins:
    """Logs identities in, with the permissions of leases."""

    def __init__(
        self,
        worker: str,
        sessions: OwnSessions,
        jars: LiveJars,
        spider: Spider,
        fetcher: Fetcher,
        judge: Judge,
        turn: AskTurn,
        routes: Routes = no_routes,
    ) -> None:
        self._worker = worker
        self._sessions = sessions
        self._jars = jars
        self._spider = spider
        self._fetcher = fetcher
        self._judge = judge
        self._turn = turn
        self._routes = routes

    async def log_in(self, lease: Lease, identity: LeasedIdentity, send_by: float) -> Report:
        """Spend this lease's permission on the login; its task is given back."""
        account, live = self._sessions.account(identity.name), self._jars.of(identity)
        if account is None:
            return give_back(lease, sent=False)
        login = Login(
            identity=identity.name,
            account=account,
            table=self._sessions.table(identity.name),
            spider=self._spider,
        )
        if live is not None:
            login.jar = live.jar
        started_at = lease.now()
        try:
            said = await self._reported(lease, identity, login, send_by)
        except (OwnFault, UnknownCrawl):
            return give_back(lease, sent=login.sent > 0)
        except LoginTrouble as trouble:
            return self._failed_try(lease, login, trouble, started_at)
        outcome = Outcome(lease=lease, verdict=Verdict.RETURNED, identity=said)
        outcome.sent, outcome.wire_bytes = login.sent > 0, login.wire_bytes
        if lease.lent is not None:
            note_passage(outcome)
        return Report(outcome)

    async def _reported(
        self, lease: Lease, identity: LeasedIdentity, login: Login, send_by: float
    ) -> IdentityReport:
        """Log in, and return what to report about the identity. Raises what `log_in` raises, except
        LoginFailed."""
        turns = Turns(partial(self._turn, lease.lent), (lease.task.site, send_by))
        try:
            route = route_of(lease, self._routes)
            done = await log_in(login, self._fetcher, route, turns)
        except LoginFailed as error:
            why = one_line(str(error))
            log.warning("%s could not log in: %s", identity.name, why)
            # The next login begins without cookies: these did not help.
            return IdentityReport(LoginChange.FAILED, why, jar=b"")
        log.info("%s is logged in", identity.name)
        return IdentityReport(
            LoginChange.IN,
            jar=self._jars.begin(identity, done.jar),
            user_agent=done.user_agent,
            login_url=done.login_url,
        )

    def _failed_try(
        self, lease: Lease, login: Login, trouble: LoginTrouble, started_at: float
    ) -> Report:
        """Return the report of a login whose host did not answer as it should: for the task, that
        is a failed try like any other."""
        answer, status = trouble.answer, None
        if isinstance(answer, Response):
            status = answer.status
            outcome = self._answered(lease, answer, trouble)
        else:
            outcome = self._judge.unanswered(lease, answer, jitter())
        note_identity(outcome)
        outcome.kind, outcome.reason = FailureKind.LOGIN, one_line(f"login: {outcome.reason}")
        outcome.sent, outcome.wire_bytes = login.sent > 0, login.wire_bytes
        if trouble.site != lease.task.site or isinstance(answer, NoTurn):
            _spare_the_host(outcome)
        if outcome.verdict is Verdict.RETURNED:  # Its exit could not be used: this was no try.
            return Report(outcome)
        return Report(outcome, page_log(outcome, self._worker, started_at, status, b""))

    def _answered(self, lease: Lease, response: Response, trouble: LoginTrouble) -> Outcome:
        now, dice = time.time(), jitter()
        if trouble.block is not None:
            outcome = self._judge.blocked(lease, response, trouble.block, now, dice)
        else:
            outcome = self._judge.answered(lease, response, now, dice)
        note_answer(outcome, response)
        return outcome


def _spare_the_host(outcome: Outcome) -> None:
    """Clear the blame of the page's host: what went wrong elsewhere says nothing about it."""
    outcome.fault, outcome.pushback = False, None
    if outcome.passage is not None and not is_of_exit(outcome.passage):
        outcome.passage = None
