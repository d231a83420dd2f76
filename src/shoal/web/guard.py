"""Checks every request (host name, role, origin, time limits) and sets every answer's headers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from shoal.web.access import COOKIE, Access, Role, WrongTokens
from shoal.web.connections import connection_of
from shoal.web.listening import HostNames
from shoal.web.problems import Problem, problem_of
from shoal.web.routes import ROUTE, Route

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers would send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Server": "shoal",
}
SAFE = frozenset({"GET", "HEAD"})
ANSWER_WITHIN_S = 30.0
BODY_WITHIN_S = 15.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ShowProblem = Callable[[web.Request, Problem], web.StreamResponse]

ROLE: web.RequestKey[Role] = web.RequestKey("role", Role)
"""The role of the client."""

log = logging.getLogger("shoal")


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to an answer. Called for every answer, whatever created it."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")


class Guard:
    """Refuses requests that are not allowed, and turns errors into answers."""

    def __init__(self, access: Access, names: HostNames, show: ShowProblem) -> None:
        self._access = access
        self._names = names
        self._wrong = WrongTokens()
        self._show = show

    def middleware(self) -> Middleware:
        """The guard as a middleware of aiohttp."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection_of(request).begin(request)
            try:
                return await self._answer(request, handler)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                problem = problem_of(error)
                if problem.status == 500:
                    log.exception("a request failed: %s %r", request.method, request.path)
                return self._show(request, problem)

        return guarded

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host not in self._names:
            raise Problem(421, f"not served here: {request.host!r} (see --allow-host)")
        route = request.match_info.route
        declared: Route | None = getattr(route, ROUTE, None)
        if declared is None:  # A static file, or a path or method that does not exist.
            return await handler(request)
        if not declared.is_public:
            self._check_role(request, declared)
        if request.method not in SAFE:
            self._check_origin(request)
        elif _is_from_another_site(request):
            raise Problem(403, "refused: a page of another site sent this request")
        _check_encoding(request)
        if not declared.takes_lines:
            await read_body(request)
        if declared.is_endless:
            return await handler(request)
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return await handler(request)

    def _check_role(self, request: web.Request, route: Route) -> None:
        role = self._role_of(request)
        if role is None:
            raise Problem(401, "a token is needed", headers={"WWW-Authenticate": "Bearer"})
        if not role.may(route.role):
            raise Problem(403, f"this needs the role {route.role}; you have {role}")
        request[ROLE] = role

    def _role_of(self, request: web.Request) -> Role | None:
        if self._access.is_open:
            return Role.ADMIN
        if (given := bearer_of(request)) is not None:
            return self.checked_token(request, given)
        return self._access.role_of_cookie(request.cookies.get(COOKIE, ""), time.time())

    def checked_token(self, request: web.Request, given: str) -> Role:
        """The role of a token that a client sent. Raises Problem if it is wrong, or if too many
        wrong ones came from the client's address."""
        address, now = request.remote or "", time.monotonic()
        if wait_s := self._wrong.wait_s(address, now):
            headers = {"Retry-After": str(int(wait_s) + 1)}
            raise Problem(429, "too many wrong tokens from your address", headers=headers)
        role = self._access.role_of_token(given)
        if role is None:
            self._wrong.note(address, now)
            log.warning("a wrong token from %s", address)
            raise Problem(401, "a wrong token", headers={"WWW-Authenticate": "Bearer"})
        return role

    def _check_origin(self, request: web.Request) -> None:
        """Refuse a change that a page of another site may have triggered. Raises Problem.

        Such a page can make a browser send a request, with this server's cookie or from this
        machine, but not with a header of its choice. So an Authorization header is proof enough.
        """
        if bearer_of(request) is not None:
            return
        site = request.headers.get("Sec-Fetch-Site")
        if site in ("same-origin", "none"):
            return
        # Browsers omit Sec-Fetch-Site if the server is not local and has no TLS.
        if site is None and _is_same_origin(request):
            return
        what = "any word" if self._access.is_open else "a token"
        raise Problem(
            403, f"not sent by a page of this server; programs send Authorization: Bearer {what}"
        )


def _check_encoding(request: web.Request) -> None:
    encodings = request.headers.getall("Content-Encoding", [])
    if request.can_read_body and any(each.strip().lower() != "identity" for each in encodings):
        headers = {"Accept-Encoding": "identity"}
        raise Problem(415, "send the body without Content-Encoding", headers=headers)


async def read_body(request: web.Request) -> None:
    """Read the whole body, which aiohttp keeps for the handler. Raises Problem."""
    if not request.can_read_body:
        return
    if request.content_type.startswith("multipart/"):
        raise Problem(415, "send a form as application/x-www-form-urlencoded")
    connection = connection_of(request)
    try:
        with connection.waiting():
            async with asyncio.timeout(BODY_WITHIN_S):
                await request.read()
    except TimeoutError:
        raise Problem(408, f"the body took longer than {BODY_WITHIN_S:.0f} s") from None
    connection.request_complete()


def _is_from_another_site(request: web.Request) -> bool:
    """Whether a page of another origin made the browser send this request. That page could not read
    the answer, but it could make the server work, for instance export items. Links that people
    click are allowed."""
    asked = request.headers
    if asked.get("Sec-Fetch-Site", "none") in ("same-origin", "none"):
        return False
    return (asked.get("Sec-Fetch-Mode"), asked.get("Sec-Fetch-Dest")) != ("navigate", "document")


def bearer_of(request: web.Request) -> str | None:
    """The token in the Authorization header. None: there is none."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" and given.strip() else None


def _is_same_origin(request: web.Request) -> bool:
    origin = urlsplit(request.headers.get("Origin", ""))
    return origin.scheme in ("http", "https") and origin.netloc.lower() == request.host.lower()
