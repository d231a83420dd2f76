"""Reads the routes by which alerts are sent: the tables [alerts.routes.NAME] of shoal.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from shoal.config import Duration
from shoal.core.fields import checked
from shoal.errors import ConfigError, ShoalError

MAX_SECRET = 10_000

Secret = Annotated[str, Meta(min_length=1, extra={"is_secret": True})]
"""A secret, or where to find it: env:NAME, file:PATH. Never shown."""

_is_name = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,31}").fullmatch


class Undelivered(ShoalError):
    """A route did not accept a message. It may accept it later."""


class Webhook(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A POST of JSON, signed if there is a secret."""

    url: Secret
    secret: Secret | None = None


class Chat(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A POST to a chat, in the format of that chat."""

    url: Secret


class Slack(Chat, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An incoming webhook of Slack, or of Mattermost."""


class Teams(Chat, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A workflow of Microsoft Teams that posts a card when it is called."""


class Discord(Chat, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A webhook of Discord."""


class Telegram(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A bot of Telegram."""

    token: Secret
    chat: str
    api: str = "https://api.telegram.org"


class Email(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An e-mail, sent by SMTP."""

    host: str
    port: Annotated[int, Meta(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password: Secret | None = None
    sender: str = msgspec.field(name="from")
    to: list[str]


class Command(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A program and its arguments, run without a shell. It gets JSON on stdin."""

    command: Annotated[list[str], Meta(min_length=1)]
    timeout: Duration = "30s"


Route = Webhook | Slack | Teams | Discord | Telegram | Email | Command


KINDS: dict[str, type[Route]] = {
    "webhook": Webhook,
    "slack": Slack,
    "teams": Teams,
    "discord": Discord,
    "telegram": Telegram,
    "email": Email,
    "command": Command,
}


def read_route(name: str, table: Mapping[str, Any]) -> Route:
    """Read a route from its table. Raises ConfigError, which shows no secret."""
    if not _is_name(name):
        raise ConfigError("a route's name has at most 32 letters, digits, - and _")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"kind: write one of {', '.join(KINDS)}")
    route = checked({key: value for key, value in table.items() if key != "kind"}, KINDS[kind])
    _check(route)
    return route


def _check(route: Route) -> None:
    """Check what the types of the fields cannot. Secrets are looked up too, so that a missing one
    is found before it is needed. Raises ConfigError, which shows no secret."""
    for name in ("url", "secret", "token", "password"):
        value = getattr(route, name, None)
        if value is None:
            continue
        try:
            found = secret(value)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        if name == "url" and not found.startswith(("http://", "https://")):
            raise ConfigError("url: not an address that begins with https://")
    if isinstance(route, Telegram) and not route.api.startswith(("http://", "https://")):
        raise ConfigError("api: not an address that begins with https://")
    if isinstance(route, Email):
        _check_email(route)


def _check_email(route: Email) -> None:
    if not route.to:
        raise ConfigError("to: nobody is named")
    for address in (route.sender, *route.to):
        if "@" not in address or not address.isprintable():
            raise ConfigError(f"not an address of a mailbox: {address!r}")
    if bool(route.user) != bool(route.password):
        raise ConfigError("user and password: one of them is missing")
    if route.password and route.security == "none":
        raise ConfigError("security: a password is not sent in the open; write starttls or tls")


def secret(source: str) -> str:
    """Look up a secret: in the environment (env:NAME), in a file (file:PATH), or else take the
    text itself. Raises ConfigError, which does not show it."""
    kind, colon, where = source.partition(":")
    if colon and kind == "env":
        found = os.environ.get(where, "")
        if not found:
            raise ConfigError(f"the environment has no {where}")
        return found.strip()
    if colon and kind == "file":
        try:
            with Path(where).open(encoding="utf-8") as file:
                found = file.read(MAX_SECRET).strip()
        except (OSError, UnicodeDecodeError):
            raise ConfigError(f"cannot read {where}") from None
        if not found:
            raise ConfigError(f"nothing is in {where}")
        return found
    return source
