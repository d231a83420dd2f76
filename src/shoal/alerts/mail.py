"""Delivers alerts by e-mail: SMTP, in a thread of its own."""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from shoal.alerts.messages import Notice, text_of, title
from shoal.alerts.routes import Email, Undelivered, secret

STEP_S = 10.0
"""How long a server may take to answer."""
MAIL_S = 30.0
"""How long a mail may take in all, so that a server that sends a byte now and then is cut off."""


async def send_mail(route: Email, notice: Notice) -> None:
    """Send a mail. Raises Undelivered, TimeoutError, and what smtplib raises."""
    mailer = _Mailer(route)
    sending = asyncio.create_task(asyncio.to_thread(mailer.send, _mail(route, notice)))
    try:
        async with asyncio.timeout(MAIL_S):
            await asyncio.shield(sending)
    except smtplib.SMTPResponseException as error:  # Its text was chosen by the server.
        raise Undelivered(f"{route.host}: it answered {error.smtp_code}") from None
    finally:
        if not sending.done():
            sending.add_done_callback(_look_at_error)
            mailer.cut_off()


def _mail(route: Email, notice: Notice) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = title(notice)
    mail["From"] = route.sender
    mail["To"] = ", ".join(route.to)
    mail["Date"] = formatdate(notice.at)
    mail["Message-ID"] = make_msgid(domain="shoal.invalid")
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text_of(notice) + "\n")
    return mail


class _Mailer:
    """One connection to a mail server. Only `cut_off` may be called from outside its thread."""

    def __init__(self, route: Email) -> None:
        self._route = route
        is_tls = route.security == "tls"
        self._smtp = (
            smtplib.SMTP_SSL(timeout=STEP_S, context=ssl.create_default_context())
            if is_tls
            else smtplib.SMTP(timeout=STEP_S)
        )

    def send(self, mail: EmailMessage) -> None:
        """Send a mail and hang up."""
        route, smtp = self._route, self._smtp
        smtp._host = route.host  # type: ignore[attr-defined]  # The certificate must name it.
        try:
            smtp.connect(route.host, route.port)
            if route.security == "starttls":
                smtp.starttls(context=ssl.create_default_context())
            if route.user and route.password:
                smtp.login(route.user, secret(route.password))
            smtp.send_message(mail, route.sender, route.to)
            with suppress(smtplib.SMTPException, OSError):  # The server already has the mail.
                smtp.quit()
        finally:
            smtp.close()

    def cut_off(self) -> None:
        """Close the connection, so that the thread stops waiting for the server."""
        if self._smtp.sock is not None:
            with suppress(OSError):
                self._smtp.sock.shutdown(socket.SHUT_RDWR)


def _look_at_error(sending: asyncio.Task[None]) -> None:
    """Retrieve the error of a task that is no longer awaited, so that asyncio does not log it."""
    if not sending.cancelled():
        sending.exception()
