"""A provider's gateway: one address, where the login decides which exit a request takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from shoal.core.proxies import ProxyAddress, proxy_at, split_proxy
from shoal.errors import ConfigError

SESSION, COUNTRY = "{session}", "{country}"

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_place = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[^:]*))?").fullmatch


class Gateway:
    """The endpoint of a pool. It is parsed before variables are filled in, so that a password may
    contain any characters."""

    def __init__(self, endpoint: str, environ: Mapping[str, str]) -> None:
        """Raises ConfigError, which never shows the value of a variable."""
        if whole := _VARIABLE.fullmatch(endpoint.strip()):
            endpoint = _value(whole[1], environ)
        scheme, login, place = split_proxy(endpoint.strip())
        _check_placeholders(endpoint)
        found = _place(place)
        if not scheme or found is None:
            raise ConfigError("endpoint: write http://user:password@host:port or socks5://...")
        self._scheme = scheme
        self._host = _filled(found["v6"] or found["name"], environ)
        self._port = _filled(found["port"] or "", environ)
        self._user, self._password = _login(login or "", environ)
        everything = (self._host, self._user, self._password)
        self.has_sessions = any(SESSION in part for part in everything)
        """Whether a session keeps its address. Otherwise each connection may have another one."""
        self.identity = "\0".join((scheme, self._port, *everything))
        """A text that identifies the gateway. It contains secrets."""
        self.address("xx", "0")  # Reports mistakes at once.

    def address(self, country: str, session: str) -> ProxyAddress:
        """The proxy for a session. Raises ConfigError."""
        host, user, password = (
            part.replace(COUNTRY, country).replace(SESSION, session)
            for part in (self._host, self._user, self._password)
        )
        try:
            return proxy_at(self._scheme, host, self._port, user, password)
        except ConfigError as error:
            raise ConfigError(f"endpoint: {error}") from None


def _check_placeholders(endpoint: str) -> None:
    for found in _PLACEHOLDER.findall(_VARIABLE.sub("", endpoint)):
        if found not in (SESSION, COUNTRY):
            raise ConfigError(f"endpoint: only {COUNTRY} and {SESSION} can be filled in")


def _login(login: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The user and the password. One variable may contain both."""
    if ":" not in login:
        login = _filled(unquote(login), environ)
        user, _, password = login.partition(":")
        return user, password
    user, _, password = login.partition(":")
    return _filled(unquote(user), environ), _filled(unquote(password), environ)


def _filled(text: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: _value(found[1], environ), text)


def _value(name: str, environ: Mapping[str, str]) -> str:
    if not environ.get(name):
        raise ConfigError(f"endpoint: the variable {name} is not set")
    return environ[name]
