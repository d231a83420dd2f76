"""Sends alerts: by HTTP, by SMTP, to a command. Every delivery has a time limit, whatever the other
side does. Errors show at most the host of an address, because addresses may be secret."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
import msgspec

from shoal.alerts.commands import run_command
from shoal.alerts.mail import send_mail
from shoal.alerts.messages import Notice, body_for
from shoal.alerts.routes import Command, Email, Route, Telegram, Undelivered, Webhook, secret
from shoal.alerts.signing import signed_headers
from shoal.errors import ShoalError
from shoal.version import __version__

TRIES = 3
WAITS_S = (1.0, 4.0)
"""Pauses between the tries."""
REQUEST_S = 10.0
"""How long one try may take."""


async def send(route: Route, notice: Notice, message_id: str) -> None:
    """Send a message by a route. `message_id` stays the same if the same message is sent again.
    Raises Undelivered, with a reason that shows no secret."""
    try:
        match route:
            case Email():
                await send_mail(route, notice)
            case Command():
                await run_command(route, notice)
            case _:
                await _post(route, notice, message_id)
    except Undelivered:
        raise
    except Exception as error:  # Whatever a library raises: other routes must still be served.
        raise Undelivered(f"{_where(route)}{_reason(error)}") from None


async def try_routes(routes: Mapping[str, Route], sender: str, now: float) -> dict[str, str]:
    """Send a test message by all routes at the same time. Returns the reasons of those that failed,
    by name."""
    notice = Notice([], now, sender, is_test=True)
    failures = await asyncio.gather(*(_failure(route, notice) for route in routes.values()))
    return {name: why for name, why in zip(routes, failures, strict=True) if why}


async def _failure(route: Route, notice: Notice) -> str:
    try:
        await send(route, notice, f"msg_{secrets.token_hex(16)}")
    except Undelivered as error:
        return str(error)
    return ""


async def _post(route: Webhook | Telegram | Route, notice: Notice, message_id: str) -> None:
    url = _url(route)
    body = msgspec.json.encode(body_for(route, notice))
    key = secret(route.secret) if isinstance(route, Webhook) and route.secret else None
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"shoal/{__version__}",
        **(signed_headers(key, message_id, notice.at, body) if isinstance(route, Webhook) else {}),
    }
    limit = aiohttp.ClientTimeout(total=REQUEST_S)
    async with aiohttp.ClientSession(timeout=limit, trust_env=False) as session:
        for wait_s in (*WAITS_S, None):
            failure, may_pass = await _try(session, url, body, headers)
            if failure is None:
                return
            if wait_s is None or not may_pass:
                raise Undelivered(f"{urlsplit(url).hostname}: {failure}")
            await asyncio.sleep(wait_s)


async def _try(
    session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]
) -> tuple[str | None, bool]:
    """Post once. Returns what went wrong, if anything, and whether another try may succeed."""
    try:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            status = answer.status
    except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
        return _reason(error), not isinstance(error, ValueError)
    if 200 <= status < 300:
        return None, False
    is_passing = status == HTTPStatus.TOO_MANY_REQUESTS or status >= 500
    return f"it answered {status}", is_passing


def _url(route: Route) -> str:
    if isinstance(route, Telegram):
        return f"{route.api}/bot{secret(route.token)}/sendMessage"
    return secret(route.url)  # type: ignore[union-attr]  # Mails and commands do not come here.


def _reason(error: Exception) -> str:
    """The reason to report for an error. Messages of libraries are not used, as they may quote the
    address, which is a secret."""
    if isinstance(error, ShoalError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    system = getattr(error, "os_error", error)
    return getattr(system, "strerror", None) or type(error).__name__


def _where(route: Route) -> str:
    """The destination as a prefix for the reason. Empty where the reason already names the host, or
    the address is a secret."""
    match route:
        case Email():
            return f"{route.host}:{route.port}: "
        case Command():
            return f"{route.command[0]}: "
        case _:
            return ""
