"""Pools of exits as users write them: the tables [proxies.NAME] of shoal.toml."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from shoal.core.exits import Rotation
from shoal.core.fields import checked
from shoal.core.policy import parse_duration, parse_rate
from shoal.core.task import DIRECT
from shoal.errors import ConfigError

TABLES = "proxies"
"""The tables are [proxies.NAME]. The pool that --proxies FILE makes has this name, too."""
MAX_EXITS = 100_000
GATEWAY_EXITS = 100
"""Sessions at a gateway if the table does not set `exits`."""

RESIDENTIAL_STICKY = "10m"
"""How long residential exits stay with a host by default: as long as a human visitor would."""

_PERIODS_S = {"hour": 3600.0, "day": 86_400.0, "month": 30 * 86_400.0}
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(hour|day|month)\s*")
_is_name = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,31}").fullmatch
_is_country = re.compile("[A-Za-z]{2}").fullmatch
SOURCES = ("file:", "env:", "http://", "https://")
ENDPOINTS = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|(?:http|https|socks5h?|socks4a?)://.+", re.S)

Duration = Annotated[str, Meta(extra={"check": parse_duration})]


def parse_budget(text: str) -> tuple[float, float]:
    """Read a budget such as `20/day`, `1.50/hour` or `300/month`: the amount, and its period in
    seconds. Raises ConfigError."""
    found = _BUDGET.fullmatch(text)
    if not found or float(found[1]) == 0:
        raise ConfigError(f"not a budget: {text!r} (write 20/day, 1.50/hour or 300/month)")
    return float(found[1]), _PERIODS_S[found[2]]


def _check_rate(text: str) -> None:
    if parse_rate(text).auto:
        raise ConfigError("auto is for hosts: write 5/s, 30/m or none")


def _check_sticky(text: str) -> None:
    if text != "none":
        parse_duration(text)


RateText = Annotated[str, Meta(extra={"check": _check_rate})]


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of requests, in any currency."""

    per_gb: Annotated[float, Meta(ge=0)] = 0.0
    per_request: Annotated[float, Meta(ge=0)] = 0.0


class PoolConfig(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One [proxies.NAME] table."""

    source: Annotated[str | list[str], Meta(description="Where its list is")] = msgspec.field(
        default_factory=list, name="from"
    )
    """Where the list of exits is: file:PATH, env:NAME (a list, or a file's path), https://...; one
    or several places."""
    endpoint: str = ""
    """A provider's gateway instead of a list. `${NAME}` is replaced by an environment variable;
    `{country}` and `{session}` differ from exit to exit."""
    refresh: Duration = "10m"
    """How often the list is read again."""
    exits: Annotated[int, Meta(ge=1, le=MAX_EXITS)] | None = None
    """How many sessions to use at the gateway: by default 100, or 1 without {session}."""
    kind: Literal["datacenter", "residential"] | None = None
    """The kind of its exits. Unless `sticky` says otherwise, residential ones are sticky for 10
    minutes, and datacenter ones change with every request."""
    countries: list[str] = []
    """The countries of its exits. The exits of a gateway take turns through them."""
    rotation: Rotation = "rested"
    """Which exit is used next: the one unused for longest (`rested`), a random one, or the one that
    does best at the host."""
    sticky: Annotated[str, Meta(extra={"check": _check_sticky})] | None = None
    """How long a host is visited by the same exits, or `none`."""
    rate: RateText = "none"
    """Requests through one exit, over all hosts and crawls."""
    rate_per_host: RateText = "none"
    """Requests through one exit to one host."""
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] = 8
    """Requests in flight through one exit."""
    escalate_to: str = ""
    """The pool to use at hosts that block this one."""
    cost: Cost = Cost()
    """`{ per_gb = 8.0, per_request = 0.001 }`."""
    budget: Annotated[str, Meta(extra={"check": parse_budget})] | None = None
    """What may be spent, such as 20/day. Then requests wait for the next hour, day or 30 days."""
    pool_timeout: Duration = "1h"
    """A task dies if no exit could be used for it during this time."""
    allow_direct: bool = False
    """Whether requests leave without an exit while none can be used."""
    tunnel: Literal["https", "always"] = "https"
    """Which requests go through a tunnel (CONNECT) of the proxy: only https, or plain http as well.
    """

    @property
    def sources(self) -> list[str]:
        """The places of the list; always a list."""
        return [self.source] if isinstance(self.source, str) else self.source

    @property
    def sticky_s(self) -> float:
        """How long exits stay with a host, in seconds."""
        if self.sticky is None:
            return parse_duration(RESIDENTIAL_STICKY) if self.kind == "residential" else 0.0
        return 0.0 if self.sticky == "none" else parse_duration(self.sticky)


def check_pool_name(name: str) -> None:
    """Check the name of a pool. Raises ConfigError if no pool can have it."""
    if not _is_name(name):
        raise ConfigError("a pool's name has at most 32 letters, digits, - and _")
    if name.lower() == DIRECT:
        raise ConfigError(f"no pool can be called {DIRECT}: that means without one")


def read_tables(tables: Any) -> dict[str, PoolConfig]:
    """Read the pools of a [proxies] table, by name. Raises ConfigError, naming table and key."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{TABLES}: write [{TABLES}.NAME]")
    pools = {name: _read(name, table) for name, table in tables.items()}
    for name, pool in pools.items():
        if pool.escalate_to and pool.escalate_to not in pools:
            there_are = ", ".join(pools)
            raise ConfigError(
                f"[{TABLES}.{name}]: escalate_to: no pool {pool.escalate_to!r}"
                f" (there are: {there_are})"
            )
        if pool.escalate_to == name:
            raise ConfigError(f"[{TABLES}.{name}]: escalate_to: a pool cannot follow itself")
    return pools


def pool_of(source: str) -> PoolConfig:
    """The pool that --proxies makes from a file, or from another place where a list is kept."""
    return PoolConfig(source=source if source.startswith(SOURCES) else f"file:{source}")


def _read(name: str, table: Any) -> PoolConfig:
    try:
        if not isinstance(table, dict):
            raise ConfigError(f"expected a table, got {type(table).__name__}")
        check_pool_name(name)
        if name == TABLES:
            raise ConfigError("this name is for --proxies FILE")
        pool = checked(table, PoolConfig)
        _check(pool)
    except ConfigError as error:
        raise ConfigError(f"[{TABLES}.{name}]: {error}") from None
    return pool


def _check(pool: PoolConfig) -> None:
    """Check what involves several fields.

    Errors show no values of endpoints or addresses, which may hold secrets.
    """
    if bool(pool.sources) == bool(pool.endpoint):
        raise ConfigError("give it a list (from) or a gateway (endpoint), one of both")
    for source in pool.sources:
        if not source.startswith(SOURCES):
            raise ConfigError("from: write file:PATH, env:NAME or https://...")
    if pool.endpoint and not ENDPOINTS.fullmatch(pool.endpoint):
        raise ConfigError("endpoint: write http://user:password@host:port or socks5://...")
    if pool.exits is not None and not pool.endpoint:
        raise ConfigError("exits: only a gateway (endpoint) has as many as you like")
    for country in pool.countries:
        if not _is_country(country):
            raise ConfigError(f"countries: not two letters: {country!r}")
    if "{country}" in pool.endpoint and not pool.countries:
        raise ConfigError("endpoint: {country} needs countries")
    if pool.budget and not (pool.cost.per_gb or pool.cost.per_request):
        raise ConfigError("budget: needs a cost")
