"""Reads the [alerts] of shoal.toml: limits for all crawls or for some, and the routes of alerts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal import config
from shoal.alerts.conditions import ALL
from shoal.alerts.limits import LONGEST_LOOK_BACK, LOOKING_BACK, Limits
from shoal.alerts.routes import Route, read_route
from shoal.config import ALERTS, CONFIG_FILE, Duration
from shoal.core.fields import Struct, checked
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError
from shoal.insight.sample import Sample
from shoal.runtime.reread import Reread

MIN_EVERY_S = 1.0
MAX_ROUTES = 20


class Times(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The keys of [alerts] that are times."""

    every: Duration = "1m"
    """How often to look at crawls."""
    again: Duration = "4h"
    """After how long an alert that still fires is sent again."""


class AlertConfig(msgspec.Struct, kw_only=True, frozen=True):
    """The content of [alerts]."""

    times: Times = Times()
    limits: dict[str, Any] = {}
    """Keys of `Limits`, for all crawls."""
    crawls: dict[str, dict[str, Any]] = {}
    """Keys of `Limits` for single crawls, by name: the tables [alerts.crawls.NAME]."""
    schedules: dict[str, dict[str, Any]] = {}
    """Keys of `Limits` for all runs of a schedule: the tables [alerts.schedules.NAME]."""
    routes: dict[str, Route] = {}
    """The routes by name: the tables [alerts.routes.NAME]."""

    def __len__(self) -> int:
        """How many routes there are."""
        return len(self.routes)

    @property
    def every_s(self) -> float:
        """Seconds between two looks at crawls, at least `MIN_EVERY_S`."""
        return max(parse_duration(self.times.every), MIN_EVERY_S)

    def limits_of_all(self) -> Limits:
        """The limits for alerts that are not about a crawl."""
        return msgspec.convert(self.limits, Limits)

    def limits_of(self, sample: Sample) -> Limits:
        """The limits for a crawl: its own win over those of its schedule, and these over the
        general ones."""
        of_schedule = self.schedules.get(sample.schedule or "", {})
        return msgspec.convert(
            self.limits | of_schedule | self.crawls.get(sample.crawl, {}), Limits
        )


def alert_file(folder: Path) -> Reread[AlertConfig]:
    """The [alerts] of shoal.toml, read again when it changes."""
    return Reread(folder, "routes of alerts", load_alerts)


def load_alerts(folder: Path | None = None) -> AlertConfig:
    """Read the [alerts] of shoal.toml. Raises ConfigError, which names table and key."""
    table = config.read_file(folder).get(ALERTS, {})
    try:
        return _read(table)
    except ConfigError as error:
        raise ConfigError(f"{CONFIG_FILE}: [{ALERTS}{error}") from None


def _read(table: Any) -> AlertConfig:
    rest = dict(_table(table, ""))
    tables = {
        name: _table(rest.pop(name, {}), f".{name}") for name in ("crawls", "schedules", "routes")
    }
    if len(tables["routes"]) > MAX_ROUTES:
        raise ConfigError(f".routes]: more than {MAX_ROUTES}")
    times = {name: rest.pop(name) for name in Times.__struct_fields__ if name in rest}
    _check_limits(rest, "")
    for kind in ("crawls", "schedules"):
        for name, limits in tables[kind].items():
            _check_limits(_table(limits, f".{kind}.{name}"), f".{kind}.{name}")
    routes = {name: _route(name, route) for name, route in tables["routes"].items()}
    return AlertConfig(
        times=_checked(times, Times, ""),
        limits=rest,
        crawls=tables["crawls"],
        schedules=tables["schedules"],
        routes=routes,
    )


def _route(name: str, value: Any) -> Route:
    where = f".routes.{name}"
    table = _table(value, where)
    try:
        return read_route(name, table)
    except ConfigError as error:
        raise ConfigError(f"{where}]: {error}") from None


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}]: expected a table, got {type(value).__name__}")
    return value


def _check_limits(table: Mapping[str, Any], where: str) -> None:
    limits = _checked(table, Limits, where)
    for name in LOOKING_BACK:
        if parse_duration(value := getattr(limits, name)) > parse_duration(LONGEST_LOOK_BACK):
            raise ConfigError(f"{where}]: {name}: at most {LONGEST_LOOK_BACK}, got {value!r}")
    for name in limits.off:
        if name not in ALL:
            raise ConfigError(f"{where}]: off: {name!r} is none of {', '.join(ALL)}")


def _checked(table: Mapping[str, Any], struct: type[Struct], where: str) -> Struct:
    try:
        return checked(table, struct)
    except ConfigError as error:
        raise ConfigError(f"{where}]: {error}") from None
