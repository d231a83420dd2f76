"""Handles the accounts that are lent to a process: requests are sent with their cookies, and
answers show whether they are still logged in. The decisions are those for Shoal's own spiders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec.structs import replace
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.httpobj import urlparse_cached
from twisted.python.failure import Failure

from shoal.core.identities import IdentityReport, LeasedIdentity, LoginChange
from shoal.errors import SessionExpired
from shoal.fetch.port import Response as OwnResponse
from shoal.frontier.values import Lease, Outcome
from shoal.scrapy.wire.sessions import JAR, SESSION
from shoal.scrapy.worker.account_jars import AccountJars
from shoal.scrapy.worker.answers import STOPPED, text_of
from shoal.spider.page import Page
from shoal.worker.report import Report

FOUND = 302


class Gate(Protocol):
    """Decides whether an account may be used here and is logged in."""

    def refusal(self, lease: Lease, identity: LeasedIdentity) -> Report | None:
        """Return the report of a visit that cannot be made here. None: it can."""

    def end_of(self, lease: Lease, identity: LeasedIdentity, response: OwnResponse) -> str:
        """Return how the status and headers of an answer show that its account is logged out.
        Empty: they do not."""

    def prove(self, page: Page) -> None:
        """Raise SessionExpired for a page that does not show that its account is logged in."""


LogIn = Callable[[Lease, LeasedIdentity, float], Awaitable[Report]]
"""Logs an account in, in place of the page that the lease is for. The lease permits it until the
given time."""


class Identities:
    """The accounts of one process."""

    def __init__(
        self,
        jars: AccountJars,
        gate: Gate,
        log_in: LogIn,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """`close` closes what logs in."""
        self._jars = jars
        self._gate = gate
        self._log_in = log_in
        self.close = close

    async def instead(
        self, lease: Lease, identity: LeasedIdentity, send_by: float
    ) -> Report | None:
        """Return the report of a lease that is not used for its page: the visit cannot be made
        here, or is a login. None: the page can be visited."""
        refusal = self._gate.refusal(lease, identity)
        if refusal is not None or identity.is_in:
            return refusal
        return await self._log_in(lease, identity, send_by)

    def lend(self, lease: Lease, identity: LeasedIdentity, request: Request) -> bool:
        """Prepare a request to be sent with its identity. False: the cookies cannot be read
        here."""
        if not self._jars.fill(identity):
            return False
        # A request that copies both asks for any account of the group again; one that copies only
        # the jar asks for this account.
        request.meta[SESSION] = lease.task.session
        request.meta[JAR] = identity.name
        return True

    def why_out(self, lease: Lease, answer: Response | Request | Failure) -> str:
        """Return why an answer shows that the account is logged out. Empty: it does not. Raises
        what the spider's own `logged_in` raises."""
        if (identity := lease.identity) is None or isinstance(answer, Failure):
            return ""
        if isinstance(answer, Request):  # A redirect that Scrapy is about to follow.
            return self._gate.end_of(lease, identity, _redirect(lease, answer.url))
        if why := self._gate.end_of(lease, identity, _own(answer)):
            return why
        if not _is_page(lease, answer):
            return ""
        try:
            self._gate.prove(_page(lease, identity, answer))
        except SessionExpired as expired:
            return str(expired)
        return ""

    def says_out(self, lease: Lease, response: Response) -> bool:
        """Whether an answer shows by its status and headers that the account is logged out."""
        identity = lease.identity
        return identity is not None and bool(self._gate.end_of(lease, identity, _own(response)))

    def note(self, outcome: Outcome, request: Request) -> None:
        """Record what a request has changed in the jar of its account, unless its session has
        ended."""
        identity, said = outcome.lease.identity, outcome.identity or IdentityReport()
        if identity is None or said.change is not LoginChange.NONE or not outcome.sent:
            return
        host = urlparse_cached(request).hostname or ""
        if (jar := self._jars.changed(identity, host)) is not None:
            outcome.identity = replace(said, jar=jar)


def _is_page(lease: Lease, response: Response) -> bool:
    """Whether an answer can be expected to show that its account is logged in: it is complete, and
    it is HTML."""
    is_whole = lease.task.method != "HEAD" and STOPPED not in response.flags
    return is_whole and isinstance(response, HtmlResponse) and 200 <= response.status < 300


def _own(response: Response) -> OwnResponse:
    """Return an answer of Scrapy as one of Shoal."""
    return OwnResponse(
        response.url, response.status, text_of(response.headers), response.body, duration_s=0.0
    )


def _redirect(lease: Lease, url: str) -> OwnResponse:
    return OwnResponse(lease.task.url, FOUND, {"Location": url}, b"", duration_s=0.0)


def _page(lease: Lease, identity: LeasedIdentity, response: Response) -> Page:
    return Page(
        url=response.url,
        status=response.status,
        headers=text_of(response.headers),
        body=response.body,
        task=lease.task,
        fingerprint=lease.fingerprint,
        session=identity.name,
    )
