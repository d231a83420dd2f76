"""Pools of exits as people write them: the tables [proxies.NAME] of shoal.toml."""

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
"""The tables are [proxies.NAME]. It is also the name of the pool that --proxies FILE makes."""
MAX_EXITS = 100_000
GATEWAY_EXITS = 100
"""Sessions at a gateway, where the table does not say how many."""

RESIDENTIAL_STICKY = "10m"
"""An address at somebody's home is kept for as long as a visitor there would stay."""

_PERIODS_S = {"hour": 3600.0, "day": 86_400.0, "month": 30 * 86_400.0}
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(hour|day|month)\s*")
_is_name = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,31}").fullmatch
_is_country = re.compile("[A-Za-z]{2}").fullmatch
SOURCES = ("file:", "env:", "http://", "https://")
ENDPOINTS = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|(?:http|https|socks5h?|socks4a?)://.+", re.S)

Duration = Annotated[str, Meta(extra={"check": parse_duration})]


def parse_budget(text: str) -> tuple[float, float]:
    """How much may be spent, and in how many seconds: `20/day`, `1.50/hour`, `300/month`."""
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
    """What requests cost, in any currency."""

    per_gb: Annotated[float, Meta(ge=0)] = 0.0
    per_request: Annotated[float, Meta(ge=0)] = 0.0


class PoolConfig(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One [proxies.NAME] table."""

    source: Annotated[str | list[str], Meta(description="Where its list is")] = msgspec.field(
        default_factory=list, name="from"
    )
    """file:PATH, env:NAME (a list, or the path of a file), https://...; one or several."""
    endpoint: str = ""
    """A provider's gateway in place of a list. `${NAME}` is a variable of the environment;
    `{country}` and `{session}` differ from exit to exit."""
    refresh: Duration = "10m"
    """How often the list is read again."""
    exits: Annotated[int, Meta(ge=1, le=MAX_EXITS)] | None = None
    """Sessions at the gateway. By default 100; 1, if the endpoint has no {session}."""
    kind: Literal["datacenter", "residential"] | None = None
    """What its exits are. Residential ones are sticky for 10 minutes, if `sticky` does not say
    otherwise; datacenter ones change with every request."""
    countries: list[str] = []
    """Where its exits are: those of a gateway by turns."""
    rotation: Rotation = "rested"
    """Which exit is next: the one that was not used for longest, any, or the one that does best at
    the host."""
    sticky: Annotated[str, Meta(extra={"check": _check_sticky})] | None = None
    """So long a host is visited by the same exits; or none."""
    rate: RateText = "none"
    """Requests by one exit, over all hosts and crawls."""
    rate_per_host: RateText = "none"
    """Requests by one exit to one host."""
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] = 8
    """Requests in flight by one exit."""
    escalate_to: str = ""
    """The pool that is used at hosts that block this one."""
    cost: Cost = Cost()
    """`{ per_gb = 8.0, per_request = 0.001 }`."""
    budget: Annotated[str, Meta(extra={"check": parse_budget})] | None = None
    """What may be spent: 20/day. The next request waits for the next hour, day or 30 days."""
    pool_timeout: Duration = "1h"
    """A task that no exit could be used for during this time is dead."""
    allow_direct: bool = False
    """Whether requests leave without an exit while none can be used."""
    tunnel: Literal["https", "always"] = "https"
    """What goes through a tunnel of the proxy: https, or plain http as well."""

    @property
    def sources(self) -> list[str]:
        """Where the list is, as a list."""
        return [self.source] if isinstance(self.source, str) else self.source

    @property
    def sticky_s(self) -> float:
        """How long exits stay with a host."""
        if self.sticky is None:
            return parse_duration(RESIDENTIAL_STICKY) if self.kind == "residential" else 0.0
        return 0.0 if self.sticky == "none" else parse_duration(self.sticky)


def check_pool_name(name: str) -> None:
    """Raises ConfigError for a name that no pool can have."""
    if not _is_name(name):
        raise ConfigError("a pool's name has at most 32 letters, digits, - and _")
    if name.lower() == DIRECT:
        raise ConfigError(f"no pool can be called {DIRECT}: that means without one")


def read_tables(tables: Any) -> dict[str, PoolConfig]:
    """The pools of a [proxies] table, by name. Raises ConfigError, which names table and key."""
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
    """The pool that --proxies makes of a file, or of another place where a list is."""
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
    """What no single field can say. An endpoint and an address may hold secrets: no value of them
    is shown."""
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
