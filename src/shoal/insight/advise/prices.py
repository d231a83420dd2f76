"""What machines, proxies and stores cost, by [prices] of shoal.toml, and what a plan costs."""

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
"""So much of a machine is used, and no more: pages do not come evenly."""
LARGEST_CORES = 64
"""Machines with more are rare, and dear."""

Price = Annotated[float, Meta(ge=0, le=1e9)]
Amount = Annotated[float, Meta(gt=0, le=1e6)]


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [prices], in any currency."""

    machine: Price = 0.0
    """Of a machine for workers, for an hour."""
    cores: Amount | None = None
    memory_gb: Amount | None = None
    """What that machine has. If it is not said: what machines have that are at work."""
    mbit: Amount | None = None
    """What its network carries in a second."""
    proxies_per_gb: Price = 0.0
    """For pools that have no `cost` of their own."""
    postgresql: Price = 0.0
    redis: Price = 0.0
    """Of these for a month."""
    scale_out_above: Price = 2000.0
    """What a single machine may cost in a month, until several smaller ones are better."""
    machines_at_least: Annotated[int, Meta(ge=1, le=1000)] = 1
    """More than one: one may fail, or each has an address of its own."""
    currency: Annotated[str, Meta(min_length=1, max_length=4)] = "$"

    @property
    def are_known(self) -> bool:
        """Whether anything costs anything."""
        return any((self.machine, self.proxies_per_gb, self.postgresql, self.redis))


NO_PRICES = Prices()


class Scale(StrEnum):
    """On what more workers should run."""

    ONE = "one"
    """A machine as they are is enough."""
    UP = "up"
    """On a larger machine."""
    OUT = "out"
    """On more machines."""


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan has to run on."""

    scale: Scale
    count: int
    cores: int
    """Of each machine."""
    memory_bytes: int
    units: int
    """So many machines as they are priced: a larger one counts as several."""
    why: str = ""
    """Why there are several: network, price, size, or as many as were asked for."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan costs until the crawl is done."""

    machines: float
    proxies: float
    stores: float
    machines_per_month: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.machines + self.proxies + self.stores


def load_prices(folder: Path | None = None) -> Prices:
    """What shoal.toml says of prices. Raises ConfigError, which names the key."""
    table: Any = config.read_file(folder).get(PRICES, {})
    try:
        return checked(table, Prices, strict=False)
    except ConfigError as error:
        raise ConfigError(f"{CONFIG_FILE}: [{PRICES}] {error}") from None


def machines_for(forecast: Forecast, fleet: FleetSeen, prices: Prices) -> Machines:
    """What a plan needs: one machine while one suffices and is not too dear."""
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
    """Why it has to be several machines, and not one that is so many times larger."""
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
    """What a plan costs. None where nothing has a price."""
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
    """Bytes per second that a machine's network carries. Without a limit: infinity."""
    return prices.mbit * 1e6 / 8 if prices.mbit else inf


def _proxies(situation: Situation, fleet: FleetSeen, prices: Prices) -> float:
    return sum(
        pool.pages
        * (pool.per_request + (pool.per_gb or prices.proxies_per_gb) * fleet.page_bytes / 1e9)
        for pool in situation.pools
        if not is_group(pool.name)
    )
