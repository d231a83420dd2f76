"""The address of a proxy. It is never shown with its login: keys are often given as user names."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Literal
from urllib.parse import unquote

import msgspec

from shoal.errors import ConfigError

ProxyScheme = Literal["http", "socks5", "bind"]
"""`bind` is no proxy, but an address of this machine that requests leave from."""

_SCHEMES: dict[str, ProxyScheme] = {
    "http": "http",
    "socks5": "socks5",
    "socks5h": "socks5",  # Our own guard decides whether the proxy looks names up.
    "bind": "bind",
}
_UNSUPPORTED = {
    "https": "proxies by https:// are not supported: name its http:// or socks5:// port",
    "socks4": "proxies by socks4:// are not supported: they know no names and no passwords",
    "socks4a": "proxies by socks4a:// are not supported: they know no passwords",
}
_FORMS = "host:port, host:port:user:password, user:password@host:port, or a URL"
_MAX_PORT = 65535
MAX_LOGIN_BYTES = 255
"""SOCKS has one byte for the length of a user name or a password."""

_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.S).fullmatch
# A name, or an IPv6 address in brackets; then a port; then a login, unless one came before an @.
_place = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:\[\]/@]+))(?::(?P<port>[^:/]*)(?::(?P<login>.+))?)?",
    re.S,
).fullmatch
_is_name = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?").fullmatch
_is_port = re.compile("[0-9]{1,5}").fullmatch
_is_unprintable = re.compile(r"[\x00-\x1f\x7f]").search


class ProxyAddress(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Where a proxy is, and the login that it asks for."""

    scheme: ProxyScheme
    host: str
    port: int = 0
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        """The address without its login."""
        secret = "***@" if self.user or self.password else ""
        port = f":{self.port}" if self.port else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{secret}{host}{port}"

    __str__ = __repr__


def parse_proxy(text: str) -> ProxyAddress:
    """Parse a proxy address in any of the usual notations.

    Raises ConfigError. The message shows no part of the address: what looks like a port may be a
    password.
    """
    scheme, login, place = split_proxy(text.strip())
    is_url = bool(scheme)
    user, _, password = (login or "").partition(":")
    if is_url:
        user, password = unquote(user), unquote(password)
    found = _place(place)
    if found is None:
        raise ConfigError(f"not a proxy (write {_FORMS})")
    if found["login"] is not None:
        if is_url or login is not None:
            raise ConfigError("not a proxy: a URL has its login before the host")
        user, _, password = found["login"].partition(":")
    host = found["v6"] or found["name"]
    return proxy_at(scheme or "http", host, found["port"] or "", user, password)


def split_proxy(text: str) -> tuple[str, str | None, str]:
    """Split an address into its scheme, the login before an @, and the rest. Without a scheme the
    first is empty, without an @ the login is None.

    A password may contain characters that a well-formed address would escape.
    """
    found = _scheme(text)
    scheme, rest = (found[1].lower(), found[2].removesuffix("/")) if found else ("", text)
    login, at, place = rest.rpartition("@")
    return scheme, login if at else None, place


def proxy_at(scheme: str, host: str, port: str, user: str, password: str) -> ProxyAddress:
    """Make an address from its parts, and check them. Raises ConfigError, which shows no part."""
    if words := _UNSUPPORTED.get(scheme):
        raise ConfigError(words)
    if scheme not in _SCHEMES:
        raise ConfigError(f"not a proxy: its scheme is none of {', '.join(_SCHEMES)}")
    known = _SCHEMES[scheme]
    if known == "bind":
        if port or user or password or not _is_address(host):
            raise ConfigError("not an address of this machine: write bind://192.0.2.1")
        return ProxyAddress(known, str(ip_address(host)))
    if not _is_port(port) or not 0 < int(port) <= _MAX_PORT:
        raise ConfigError("not a proxy: its port is missing or no number up to 65535")
    if not _is_address(host) and not _is_name(host):
        raise ConfigError("not a proxy: its host is no name and no address")
    if _is_unprintable(user + password) or ":" in user:
        raise ConfigError("not a proxy: its login has characters that cannot be sent")
    if max(len(user.encode()), len(password.encode())) > MAX_LOGIN_BYTES and known == "socks5":
        raise ConfigError(f"not a proxy: its login is longer than {MAX_LOGIN_BYTES} bytes")
    return ProxyAddress(known, host.lower(), int(port), user, password)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
