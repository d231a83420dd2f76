"""Addresses of servers: parsing them, and showing them without secrets."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

import msgspec

from shoal.errors import ConfigError

_SCHEME = re.compile(r"[A-Za-z+-]*:?/*")
# Wide enough to match misspellings of `password`.
_NAMES = r"[\w-]*(?:pas|pw|auth|secret|token|key)[\w-]*"
# The second form is no URL, but users give it for one: `host=x password='a b'`. There is no telling
# where its secret ends.
_SECRET_OPTION = re.compile(rf"([?&]{_NAMES}=)[^&#]*|((?:^|[\s;]){_NAMES}\s*=).*", re.I | re.S)
# In the address of a stream or a list, `key` is its name and no secret.
_STREAM = re.compile(r"rediss?(-stream|\+[a-z]+)?:")
_SECRET_OF_STREAM = re.compile(rf"([?&](?!key=){_NAMES}=)[^&#]*()", re.I)
# For addresses within a text, where nothing marks them. Each part has a bound or ends at the next
# slash, so that a malicious text takes no longer than any other.
_LOGIN_IN_TEXT = re.compile(r"(://)[^\s/?#]*@")
_OPTION_IN_TEXT = re.compile(
    r"([?&](?:[\w.-]{0,40}[_.-])?"
    r"(?:password|passwd|passphrase|pass|pwd|pw|secret|token|auth|authorization|key|apikey"
    r"|signature|sig|session|sessionid|credential|credentials)=)[^&#\s\"'<>]+",
    re.I,
)
# Greedy up to the last @: a password may have characters that should have been escaped.
_PARTS = re.compile(
    r"(?P<scheme>[a-z+-]+)://(?:(?P<login>.*)@)?(?P<hosts>[^/?#]*)(?P<rest>.*)", re.S
)
_HOST = re.compile(r"(?:\[(?P<v6>[^\s\[\]]+)\]|(?P<name>[^\s:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
_MAX_PORT = 65535


class Address(msgspec.Struct, frozen=True):
    """The address of a server, or of several that belong together."""

    shown: str
    """The address without secrets, for messages."""
    scheme: str
    hosts: list[tuple[str, int]]
    user: str = ""
    password: str = ""
    path: str = ""
    segments: list[str] = []
    """The path, split before escapes are decoded, so that a part may contain slashes."""
    options: dict[str, str] = {}


def masked(address: str) -> str:
    """The address without its password, for messages and logs. Also for text that is no address."""
    login, at, rest = address.rpartition("@")
    scheme = _SCHEME.match(login)
    begin = scheme.end() if scheme else 0
    secret = _SECRET_OF_STREAM if _STREAM.match(address) else _SECRET_OPTION
    shown = secret.sub(r"\1\2***", rest)
    if not at:
        return shown
    if _SECRET_OPTION.search(login):
        return f"{login[:begin]}***"  # There is no telling where the secret ends.
    user, colon, _ = login[begin:].partition(":")
    # Without `//`, what looks like the scheme may be the user, and what follows the password.
    is_user = colon or login[:begin].endswith("//")
    return f"{login[:begin]}{user if is_user else '***'}{colon and ':***'}@{shown}"


def without_credentials(text: str) -> str:
    """A text with the logins and secrets of all addresses in it masked, for logs."""
    if "://" not in text and "?" not in text:
        return text
    return _OPTION_IN_TEXT.sub(_without_value, _LOGIN_IN_TEXT.sub(r"\1***@", text))


def _without_value(found: re.Match[str]) -> str:
    if found[1][1:].lower() == "key=":
        near = max(found.start() - 200, 0)
        begin = max(found.string.rfind(" ", near, found.start()) + 1, near)
        if _STREAM.match(found.string, begin):
            return found[0]
    return f"{found[1]}***"


def parse_address(text: str, default_port: int) -> Address:
    """Read `scheme://user:password@host:port,host:port/path?option=value`. Raises ConfigError."""
    parts = _PARTS.fullmatch(text)
    if not parts:
        raise ConfigError(f"not an address: {masked(text)!r}")
    user, _, password = (parts["login"] or "").partition(":")
    path, _, query = parts["rest"].partition("?")
    return Address(
        shown=masked(text),
        scheme=parts["scheme"],
        hosts=[_host(part, default_port) for part in parts["hosts"].split(",")],
        user=unquote(user),
        password=unquote(password),
        path=unquote(path.lstrip("/")),
        segments=[unquote(part) for part in path.split("/") if part],
        options=dict(parse_qsl(query, keep_blank_values=True)),
    )


def _host(text: str, default_port: int) -> tuple[str, int]:
    host = _HOST.fullmatch(text)
    port = int((host and host["port"]) or default_port)
    if not host or not 0 < port <= _MAX_PORT:
        # The supposed port may be a password: if the @ is missing, it is in the port's place.
        raise ConfigError(f"not a host and port: {re.sub(':.*', ':***', text)!r}")
    return host["v6"] or host["name"], port
