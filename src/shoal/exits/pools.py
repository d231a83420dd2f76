"""Pools of exits: their rules for the fleet, made from a table of shoal.toml, and their exits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.policy import parse_duration, parse_rate
from shoal.core.pool_config import GATEWAY_EXITS, TABLES, PoolConfig, parse_budget
from shoal.core.proxies import ProxyAddress
from shoal.errors import ConfigError
from shoal.exits.gateways import Gateway
from shoal.exits.ids import exit_id, session_id, session_text
from shoal.exits.lists import ListedProxy, ProxyList, read_source
from shoal.fetch.port import Fetcher, Route

OVERHEAD_BYTES = 512 * 1024
"""The maximum size of a request and its answer besides the body: headers in both directions."""

log = logging.getLogger("shoal")


class KnownExit(NamedTuple):
    """An exit that this worker can use."""

    entry: ExitEntry
    proxy: ProxyAddress | None = None
    """The proxy. None for an exit of a gateway, whose address depends on the session."""


class Pool:
    """One pool: its rules for the fleet, and its exits as last read."""

    def __init__(
        self, name: str, table: PoolConfig, max_body_bytes: int, environ: Mapping[str, str]
    ) -> None:
        """Raises ConfigError, which names the table."""
        self.name = name
        self.table = table
        self._environ = environ
        self._lists: dict[str, ProxyList] = {}
        self._complaints: dict[str, str] = {}
        self._routes: dict[str, tuple[int, Route]] = {}
        self.exits: dict[str, KnownExit] = {}
        try:
            self.rules = rules_of(name, table, max_body_bytes)
            self._gateway = Gateway(table.endpoint, environ) if table.endpoint else None
        except ConfigError as error:
            raise ConfigError(f"[{TABLES}.{name}]: {error}") from None
        if self._gateway is not None:
            self._know(_sessions(name, table, self._gateway))

    @property
    def is_known(self) -> bool:
        """Whether its lists were ever read. If not, the fleet is not told about the pool."""
        return self._gateway is not None or bool(self._lists)

    @property
    def entries(self) -> list[ExitEntry]:
        """The exits in the form that the frontier stores."""
        return [known.entry for known in self.exits.values()]

    async def read(self, fetcher: Fetcher, *, strict: bool = False) -> None:
        """Read the lists. A list that cannot be read stays as it was, unless `strict`: then this
        raises ConfigError."""
        if self._gateway is not None:
            return
        for source in self.table.sources:
            try:
                read = self._lists[source] = await read_source(source, self._environ, fetcher)
            except ConfigError as error:
                if strict:
                    raise
                kept = "; it stays as it was" if source in self._lists else ""
                self._complain(source, f"{error}{kept}")
                continue
            plural = "lines are no proxies" if read.bad > 1 else "line is no proxy"
            self._complain(source, f"{read.bad} {plural} ({read.why})" if read.bad else "")
        self._know(_entries(self.name, self.table, self._lists.values()))

    def _complain(self, source: str, words: str) -> None:
        """Log a complaint about a source, but only if it differs from the last one."""
        if words and self._complaints.get(source) != words:
            log.warning("pool %s: %s", self.name, words)
        self._complaints[source] = words

    def _know(self, exits: dict[str, KnownExit]) -> None:
        self.exits = exits
        self._routes = {name: at for name, at in self._routes.items() if name in exits}

    def route(self, exit_: str, session: int) -> Route | None:
        """The route through an exit. None if the exit is not known here, or no longer."""
        made = self._routes.get(exit_)
        if made is not None and made[0] == session:
            return made[1]
        known = self.exits.get(exit_)
        if known is None:
            return None
        route = self._route(known, session)
        self._routes[exit_] = session, route
        return route

    def _route(self, known: KnownExit, session: int) -> Route:
        name, is_all = known.entry.id, self.table.tunnel == "always"
        if self._gateway is None:
            return Route(name, known.proxy, tunnels_all=is_all)
        proxy = self._gateway.address(known.entry.country, session_text(name, session))
        return Route(
            f"{name}/{session}",
            proxy,
            keeps_connections=self._gateway.has_sessions,
            tunnels_all=is_all,
        )


def rules_of(name: str, table: PoolConfig, max_body_bytes: int) -> PoolRules:
    """The rules of a pool for the fleet. Raises ConfigError."""
    budget, period_s = parse_budget(table.budget) if table.budget else (0.0, 86_400.0)
    rules = PoolRules(
        name=name,
        rotation=table.rotation,
        sticky_s=table.sticky_s,
        interval_s=parse_rate(table.rate).interval_s,
        pair_interval_s=parse_rate(table.rate_per_host).interval_s,
        concurrency=table.concurrency,
        escalate_to=table.escalate_to,
        allow_direct=table.allow_direct,
        timeout_s=parse_duration(table.pool_timeout),
        is_gateway=bool(table.endpoint),
        per_gb=table.cost.per_gb,
        per_request=table.cost.per_request,
        budget=budget,
        budget_period_s=period_s,
        most_bytes=max_body_bytes + OVERHEAD_BYTES,
    )
    if budget and rules.most_cost > budget:
        raise ConfigError(
            f"budget: {table.budget} is less than one request may cost"
            f" ({rules.most_cost:.4f}, see max_body_bytes)"
        )
    return rules


def _entries(name: str, table: PoolConfig, lists: Iterable[ProxyList]) -> dict[str, KnownExit]:
    """The exits of all lists, without duplicates. If the table names a single country, that is the
    country of all exits for which the list names none."""
    usual = table.countries[0].lower() if len(table.countries) == 1 else ""
    listed: dict[ProxyAddress, ListedProxy] = {}
    for each in lists:
        for line in each.exits:
            listed.setdefault(line.proxy, line)
    found = {}
    for line in listed.values():
        entry = ExitEntry(exit_id(name, line.proxy), table.kind or "", line.country or usual)
        found[entry.id] = KnownExit(entry, line.proxy)
    return found


def _sessions(name: str, table: PoolConfig, gateway: Gateway) -> dict[str, KnownExit]:
    """The exits of a gateway, spread over its countries in turn."""
    count = table.exits or (GATEWAY_EXITS if gateway.has_sessions else 1)
    countries = [country.lower() for country in table.countries] or [""]
    found = {}
    for index in range(count):
        country = countries[index % len(countries)]
        at = session_id(name, gateway.identity, country, index)
        found[at] = KnownExit(ExitEntry(at, table.kind or "", country))
    return found
