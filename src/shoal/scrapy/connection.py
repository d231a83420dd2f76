"""The Redis that a project's REDIS_* settings name: as a redis-py client and as an address."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from shoal.core.addresses import Address, masked, parse_address
from shoal.errors import ConfigError, MissingExtra
from shoal.frontier.addresses import REDIS_SCHEMES, place_of
from shoal.scrapy import defaults
from shoal.scrapy.reading import mapping

SETTINGS_PARAMS_MAP = {
    "REDIS_URL": "url",
    "REDIS_HOST": "host",
    "REDIS_PORT": "port",
    "REDIS_DB": "db",
    "REDIS_ENCODING": "encoding",
    "REDIS_DECODE_RESPONSES": "decode_responses",
}

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 6379
DEFAULT_ADDRESS = f"redis://{DEFAULT_HOST}:{DEFAULT_PORT}/0"

_SAY_WHERE = {"url", "host", "port", "db", "username", "password", "ssl", "unix_socket_path"}
_ONE_SERVER = ("redis", "rediss")
_OF_THE_CLIENT = {
    "socket_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "retry_on_timeout",
    "max_connections",
    "health_check_interval",
    "client_name",
    "protocol",
    "encoding",
    "decode_responses",
}
"""Options in a REDIS_URL that tell redis-py how to talk to the server: Shoal ignores them and uses
its own."""
_CA_OPTION = re.compile(r"([?&])ca=")
_TRANSLATED = _OF_THE_CLIENT | {"db", "username", "password", "ssl_ca_certs"}


def get_redis_from_settings(settings: BaseSettings) -> Any:
    """Return a blocking redis-py client for a project's own code. It connects on first use.

    Where no setting names a Redis, it is that of SHOAL_FRONTIER, otherwise the one on this machine.
    Shoal itself does not use this client: each call stops all downloads until it returns.
    """
    params = {**defaults.REDIS_PARAMS, **_given(settings)}
    if not _SAY_WHERE & set(params) and (frontier := settings.get("SHOAL_FRONTIER")):
        state = place_of(frontier, settings.get("SHOAL_STATE")).state
        if scheme_of(state) in REDIS_SCHEMES:
            params["url"] = state
    return get_redis(**params)


from_settings = get_redis_from_settings


def get_redis(**kwargs: Any) -> Any:
    """Return a redis-py client, or one of the class `redis_cls`, which may be given as an import
    path."""
    try:
        make = load_object(kwargs.pop("redis_cls", None) or defaults.REDIS_CLS)
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("a client for Redis", "redis") from None
    url = kwargs.pop("url", None)
    if not url:
        return make(**kwargs)
    if scheme_of(url) in ("redis+sentinel", "redis+cluster"):
        raise ConfigError(f"{masked(url)}: a client can be made for redis:// and rediss:// only")
    # Shoal's option `ca` has another name in redis-py.
    return make.from_url(_CA_OPTION.sub(r"\1ssl_ca_certs=", url), **kwargs)


def address_of(settings: BaseSettings) -> str | None:
    """Return the address that the settings of scrapy-redis name, as Shoal writes it.

    None if none of them names a Redis. Raises ConfigError for what Shoal cannot reach.
    """
    params = _given(settings)
    if not _SAY_WHERE & set(params):
        return None
    if params.get("unix_socket_path"):
        raise ConfigError("REDIS_PARAMS: Shoal reaches Redis by host and port, not by a socket")
    if "url" in params:
        return _merged(str(params["url"]), params)
    scheme = "rediss" if params.get("ssl") else "redis"
    host, port = params.get("host") or DEFAULT_HOST, str(params.get("port") or DEFAULT_PORT)
    if not port.isdecimal():
        raise ConfigError(f"REDIS_PORT is no number: {port!r}")
    return _written(Address("", scheme, [(str(host), int(port))]), params)


def _given(settings: BaseSettings) -> dict[str, Any]:
    """Return the connection parameters in the project's settings. A setting of its own takes
    precedence over REDIS_PARAMS."""
    named = {name: settings.get(setting) for setting, name in SETTINGS_PARAMS_MAP.items()}
    params = mapping(settings, "REDIS_PARAMS")
    return {**params, **{name: value for name, value in named.items() if value}}


def _merged(url: str, params: dict[str, Any]) -> str:
    """Return the address with parameters merged in as redis-py does it: the URL takes
    precedence."""
    if scheme_of(url) not in REDIS_SCHEMES:
        raise ConfigError(f"REDIS_URL: not an address of Redis: {masked(url)!r}")
    if scheme_of(url) not in _ONE_SERVER:
        return url
    address = parse_address(url, DEFAULT_PORT)
    if len(address.hosts) > 1:
        return url  # It is rejected where it is used.
    return _written(address, {**params, **address.options})


def _written(address: Address, params: dict[str, Any]) -> str:
    """Return the address as text, with what only the parameters give added."""
    user = quote(str(address.user or params.get("username") or ""), safe="")
    password = quote(str(address.password or params.get("password") or ""), safe="")
    login = f"{user}:{password}@" if user or password else ""
    (host, port), *_ = address.hosts
    shown_host = f"[{host}]" if ":" in host else host
    database = address.path or params.get("db") or 0
    options = {name: text for name, text in address.options.items() if name not in _TRANSLATED}
    if params.get("ssl_ca_certs") and address.scheme == "rediss":
        options["ca"] = str(params["ssl_ca_certs"])
    query = f"?{urlencode(options)}" if options else ""
    return f"{address.scheme}://{login}{shown_host}:{port}/{database}{query}"


def scheme_of(address: str) -> str:
    """Return the scheme of an address: `redis`, `rediss`, ..."""
    return str(address).partition(":")[0]
