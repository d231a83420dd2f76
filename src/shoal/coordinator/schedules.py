"""Schedules: what to crawl and when, read from the [[schedule]] tables of shoal.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal import config
from shoal.config import Duration, Settings
from shoal.coordinator.cron import Calendar, calendar_of
from shoal.core.fields import checked
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError
from shoal.runtime.reread import Reread

MAX_NAME = 80

_is_name = re.compile("[A-Za-z0-9_.-]+").fullmatch


class Schedule(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One [[schedule]] table."""

    name: str
    """The name of the schedule. Its runs are called NAME@2026-11-15T03:00."""
    target: str | list[str]
    """What to crawl, as in `shoal crawl`: file.py:Class, package.module:Class, scrapy:SPIDER, or
    URLs."""
    cron: str
    """When to run: minute, hour, day, month, weekday. An optional sixth field in front: seconds."""
    timezone: str = "UTC"
    """The time zone of `cron`: Europe/Berlin."""
    window: Duration | None = None
    """How long a run may take (6h). A run that will take longer is reported."""
    overlap: Literal["skip", "wait", "cancel"] = "skip"
    """What to do when a run is due and the previous one is not over: skip the new run, let it wait,
    or cancel the previous one."""
    catch_up: bool = False
    """Whether a run that was due while no coordinator was running begins late. If there are
    several, only the last one does."""
    recrawl: bool = True
    """Whether a run builds on the finished one before it: unchanged pages are not fetched again,
    and items that are gone are marked."""
    seeds: str | None = None
    """A file of seeds, as in `shoal seed --file`."""
    sitemaps: list[str] = []
    """Sitemaps, as in `shoal seed --sitemap`."""
    keep: Duration = "7d"
    """How long the crawl of a run that is over stays in the frontier. Its results and its history
    stay longer."""
    args: dict[str, Any] = {}
    """The arguments of the spider, as in `shoal crawl -a`."""
    settings: dict[str, Any] = {}
    """Settings of its runs. They win over those of shoal.toml and of the spider."""

    def __post_init__(self) -> None:
        if not _is_name(self.name) or len(self.name) > MAX_NAME:
            raise ConfigError(f"name: at most {MAX_NAME} letters, digits, and - _ .")
        calendar_of(self.cron, self.timezone)
        if not self.targets or not all(self.targets):
            raise ConfigError("target: must not be empty")
        if not_allowed := {"name", "frontier", "previous"} & self.settings.keys():
            raise ConfigError(f"settings: {min(not_allowed)} cannot be set for a run")
        config.build(self.settings)

    @property
    def targets(self) -> list[str]:
        """The target as a list."""
        return self.target.split() if isinstance(self.target, str) else self.target

    @property
    def calendar(self) -> Calendar:
        """The calendar of its due times."""
        return calendar_of(self.cron, self.timezone)

    @property
    def window_s(self) -> float | None:
        """The window in seconds."""
        return parse_duration(self.window) if self.window else None

    @property
    def keep_s(self) -> float:
        """`keep` in seconds."""
        return parse_duration(self.keep)


def load_schedules(folder: Path | None = None) -> dict[str, Schedule]:
    """The schedules in shoal.toml, by name. Raises ConfigError, which names the schedule."""
    schedules: dict[str, Schedule] = {}
    for number, table in enumerate(config.tables(config.SCHEDULES, folder), 1):
        schedule = _read(table, number)
        if schedule.name in schedules:
            raise ConfigError(f"{config.CONFIG_FILE}: two schedules are named {schedule.name!r}")
        schedules[schedule.name] = schedule
    return schedules


def schedule_file(folder: Path) -> Reread[dict[str, Schedule]]:
    """The schedules in shoal.toml, read again when the file changes."""
    return Reread(folder, "schedules", load_schedules)


def settings_for(
    schedule: Schedule,
    spider: Mapping[str, Any],
    options: Mapping[str, Any],
    previous: str | None = None,
) -> Settings:
    """The settings of a schedule's runs in this process.

    The schedule's settings win over all others except the command line (`options`). `spider` are
    those of the spider's class.
    """
    wanted = schedule.settings | {name: at for name, at in options.items() if at is not None}
    if previous is not None:
        wanted |= {"previous": previous}
    return config.load(spider=spider, options=wanted, environ=os.environ)


def named(schedules: dict[str, Schedule], name: str) -> Schedule:
    """The schedule with this name. Raises ConfigError if there is none."""
    if name not in schedules:
        there_are = ", ".join(schedules) or "none"
        raise ConfigError(
            f"no schedule {name!r} in {config.CONFIG_FILE} here (there are: {there_are})"
        )
    return schedules[name]


def _read(table: Any, number: int) -> Schedule:
    name = table.get("name", f"number {number}") if isinstance(table, dict) else f"number {number}"
    where = f"{config.CONFIG_FILE}: schedule {name}"
    try:
        return checked(table, Schedule)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
