"""Receivers of alerts: an HTTP server and a mail server in the test process."""

from __future__ import annotations

import asyncio
import ssl
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, NamedTuple, Self

import msgspec
from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from support.until import until_now


class Received(NamedTuple):
    """A request that was received."""

    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return msgspec.json.decode(self.body)


class Receiver:
    """Receives webhooks. The next answers have the given statuses, all later ones 204. Use it with
    `support.sites.serving` or `async with`."""

    def __init__(self, *statuses: int) -> None:
        self.received: list[Received] = []
        self.statuses = list(statuses)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.received.append(Received(request.path, dict(request.headers), body))
        status = self.statuses.pop(0) if self.statuses else 204
        headers = {"Location": "/elsewhere"} if 300 <= status < 400 else None
        return web.Response(status=status, headers=headers)

    def alerts(self) -> list[tuple[str, str]]:
        """The alerts received in webhooks, with their states."""
        messages = [received.json() for received in self.received]
        return [(one["alert"], one["state"]) for said in messages for one in said["alerts"]]

    def wait_for(self, alert: str, state: str) -> None:
        """Wait until an alert was received in this state."""
        until_now(f"{alert} {state}", lambda: (alert, state) in self.alerts())


class MailServer:
    """A mail server. If a password is given, clients must log in; with `starttls`, only after
    STARTTLS. Use it with `support.sites.serving` or `async with`."""

    def __init__(
        self, *, password: str | None = None, starttls: ssl.SSLContext | None = None
    ) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.port = 0
        self._password = password
        self._starttls = starttls

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._talk, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def _talk(self) -> SMTP:
        return SMTP(
            self,
            tls_context=self._starttls,
            require_starttls=self._starttls is not None,
            authenticator=self._is_right if self._password else None,
            auth_required=self._password is not None,
        )

    def _is_right(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any
    ) -> AuthResult:
        assert isinstance(given, LoginPassword)
        self.logins.append((given.login, given.password))
        is_right = given.password.decode() == self._password
        return AuthResult(success=is_right, handled=False)

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Accept a mail."""
        content = envelope.content
        assert isinstance(content, bytes)
        mail = message_from_bytes(content, policy=policy.default)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"
