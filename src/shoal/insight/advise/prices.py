"""Calculates what a plan costs and which machines it needs, from the [prices] of shoal.toml."""

from __future__ import annotations

from enum import StrEnum
from math import ceil, inf
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shoal import config
from shoal.config import CONFIG_FILE, PRICES
from shoal.core.fields import checked
from shoal.core.identities import is_group
from shoal.errors import ConfigError
from shoal.insight.advise.model import MEMORY_USE, Forecast
from shoal.insight.advise.seen import FleetSeen
from shoal.insight.advise.situation import Situation

MONTH_H = 730.0
CORE_USE = 0.7
"""The share of a machine's cores to plan with. The rest is a reserve: load is not even."""
LARGEST_CORES = 64
"""Advise no machine with more cores: they are rare and expensive."""

Price = Annotated[float, Meta(ge=0, le=1e9)]
Amount = Annotated[float, Meta(ge=0.001, le=1e6)]


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [prices]. The currency is the user's choice."""

    machine: Price = 0.0
    """The price of one machine for workers, per hour."""
    cores: Amount | None = None
    """The cores of such a machine. None: as many as the present machines have on average."""
    memory_gb: Amount | None = None
    """The memory of such a machine. None: as much as the present machines have on average."""
    mbit: Amount | None = None
    """The megabits per second that its network carries. None: no limit."""
    proxies_per_gb: Price = 0.0
    """The price of a gigabyte through pools without a `cost` of their own."""
    postgresql: Price = 0.0
    """The price of PostgreSQL per month."""
    redis: Price = 0.0
    """The price of Redis per month."""
    scale_out_above: Price = 2000.0
    """If a single machine would cost more than this per month, several smaller ones are advised."""
    machines_at_least: Annotated[int, Meta(ge=1, le=1000)] = 1
    """More than one if one may fail, or so that each has an address of its own."""
    currency: Annotated[str, Meta(min_length=1, max_length=4)] = "$"

    @property
    def are_known(self) -> bool:
        """Whether any price but those of pools is set."""
        return any((self.machine, self.proxies_per_gb, self.postgresql, self.redis))


NO_PRICES = Prices()


class Scale(StrEnum):
    """How the machines for a plan differ from one machine as it is priced."""

    ONE = "one"
    """One machine is enough."""
    UP = "up"
    """One larger machine."""
    OUT = "out"
    """Several machines."""


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """The machines that a plan needs."""

    scale: Scale
    count: int
    cores: int
    """The cores of each machine."""
    memory_bytes: int
    """The memory of each machine."""
    units: int
    """The number of machines to pay for. A larger machine counts as several."""
    why: str = ""
    """Why there are several: network, price, size, or because `machines_at_least` says so."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a plan until the crawl is done."""

    machines: float
    proxies: float
    stores: float
    machines_per_month: float

    @property
    def total(self) -> float:
        """The sum of all costs."""
        return self.machines + self.proxies + self.stores


def load_prices(folder: Path | None = None) -> Prices:
    """Read the [prices] of shoal.toml. Raises ConfigError, which names the key."""
    table: Any = config.read_file(folder).get(PRICES, {})
    try:
        return checked(table, Prices, strict=False)
    except ConfigError as error:
        raise ConfigError(f"{CONFIG_FILE}: [{PRICES}] {error}") from None


def machines_for(forecast: Forecast, fleet: FleetSeen, prices: Prices) -> Machines:
    """The machines for a plan: one if possible. `_why_several` says when it is not."""
    cores = max(prices.cores or fleet.cores / fleet.machines, 1.0)
    memory = (prices.memory_gb or 0) * 1e9 or fleet.memory_bytes / fleet.machines
    by_cores = forecast.per_s * fleet.main_s / CORE_USE / cores
    by_memory = forecast.plan.workers * fleet.worker_bytes / MEMORY_USE / memory if memory else 0.0
    by_network = ceil(forecast.per_s * fleet.page_bytes / carried(prices))
    larger = max(ceil(max(by_cores, by_memory)), 1)
    why = _why_several(larger, larger * cores, by_network, prices)
    units = max(larger, by_network, prices.machines_at_least)
    return Machines(
        scale=Scale.OUT if why else Scale.UP if larger > 1 else Scale.ONE,
        count=units if why else 1,
        cores=ceil(cores * (1 if why else larger)),
        memory_bytes=round(memory * (1 if why else larger)),
        units=units,
        why=why,
    )


def _why_several(larger: int, cores: float, by_network: int, prices: Prices) -> str:
    """Why several machines are needed and not a single one, `larger` times as large. Empty if they
    are not."""
    if prices.machines_at_least > 1:
        return "as many as asked for"
    if by_network > 1:
        return "network"
    if larger > 1 and cores > LARGEST_CORES:
        return "size"
    return "price" if larger > 1 and _per_month(larger, prices) > prices.scale_out_above else ""


def _per_month(units: int, prices: Prices) -> float:
    return units * prices.machine * MONTH_H


def cost_of(
    forecast: Forecast, situation: Situation, fleet: FleetSeen, prices: Prices
) -> Cost | None:
    """The cost of a plan. None if nothing has a price."""
    of_proxies = _proxies(situation, fleet, prices)
    if not (prices.are_known or of_proxies):
        return None
    hours = forecast.seconds / 3600
    units = machines_for(forecast, fleet, prices).units
    return Cost(
        machines=units * prices.machine * hours,
        proxies=of_proxies,
        stores=(prices.postgresql + prices.redis) / MONTH_H * hours,
        machines_per_month=_per_month(units, prices),
    )


def carried(prices: Prices) -> float:
    """The bytes per second that a machine's network carries; infinity without a limit."""
    return prices.mbit * 1e6 / 8 if prices.mbit else inf


def _proxies(situation: Situation, fleet: FleetSeen, prices: Prices) -> float:
    return sum(
        pool.pages
        * (pool.per_request + (pool.per_gb or prices.proxies_per_gb) * fleet.page_bytes / 1e9)
        for pool in situation.pools
        if not is_group(pool.name)
    )
