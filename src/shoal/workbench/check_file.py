"""Finds mistakes in shoal.toml and in environment variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal import config
from shoal.alerts.config import load_alerts
from shoal.config import (
    CONFIG_FILE,
    ENV_PREFIX,
    FILE_SUFFIX,
    KEYS,
    SETTINGS,
    SPIDERS,
    of_spider,
    of_variables,
    unknown_key,
    variable_of,
)
from shoal.coordinator.schedules import load_schedules
from shoal.core.near_names import meant, nearest, no_such
from shoal.errors import ConfigError
from shoal.feeds.tables import load_feeds
from shoal.fleet import target
from shoal.spider.attributes import NEAR
from shoal.workbench.findings import Finding

_LINE = re.compile(r"\(at line (\d+)")


def check_file(spiders: Collection[str] | None) -> list[Finding]:
    """The mistakes in the shoal.toml of the working folder, if there is one. `spiders` are the
    names that tables of spiders may have; None: they are not known."""
    try:
        table = config.read_file()
    except ConfigError as error:
        line = _LINE.search(str(error))
        return [Finding(CONFIG_FILE, int(line[1]) if line else 0, _bare(error))]
    found = [*_settings(table), *_of_spiders(table.get(SPIDERS), spiders)]
    for load in (_load_alone, load_schedules, load_feeds, load_alerts):
        found += _loaded(load, found)
    if not found:
        found += _targets()
    return found


def check_variables(environ: Mapping[str, str]) -> list[Finding]:
    """The variables that look like misspelt settings, and those that have wrong values."""
    found = [*_values(environ)]
    for variable in sorted(environ):
        name = variable.removeprefix(ENV_PREFIX).removesuffix(FILE_SUFFIX).lower()
        if not variable.startswith(ENV_PREFIX) or name in SETTINGS:
            continue
        if nearest(name, SETTINGS, NEAR):  # Others may belong to other programs.
            found.append(Finding(variable, 0, f"no setting {name!r}{meant(name, SETTINGS)}"))
    return found


def _values(environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        given = of_variables(environ)
    except ConfigError as error:
        variable, _, message = str(error).partition(": ")
        yield Finding(variable, 0, message) if message else Finding("environment", 0, variable)
        return
    for name, value in given.items():
        if flaw := _flaw_of(name, value):
            yield Finding(variable_of(name), 0, flaw)


def _flaw_of(name: str, value: Any) -> str:
    """What is wrong with one setting alone, so that all wrong settings are reported."""
    try:
        config.build({name: value})
    except ConfigError as error:
        return str(error)
    return ""


def _settings(table: Mapping[str, Any]) -> Iterator[Finding]:
    for name, value in table.items():
        if name not in KEYS:
            yield _finding(name, unknown_key(name))
        elif name in SETTINGS and not isinstance(value, dict) and (flaw := _flaw_of(name, value)):
            yield _finding(name, flaw)


def _of_spiders(table: Any, spiders: Collection[str] | None) -> Iterator[Finding]:
    """The mistakes in the tables [spider.NAME]."""
    for name in table if isinstance(table, dict) else ():
        place = f"{SPIDERS}.{name}"
        try:
            of_spider(name)
        except ConfigError as error:
            yield _finding(place, _bare(error))
        if spiders is not None and name not in spiders:
            yield _finding(place, f"[{place}]: there is {no_such('spider', name, spiders)}")


def _load_alone() -> None:
    config.load(environ={})


def _loaded(load: Callable[[], object], found: list[Finding]) -> Iterator[Finding]:
    try:
        load()
    except ConfigError as error:
        if load is _load_alone and found:  # It repeats the first finding.
            return
        yield _finding("", _bare(error))


def _targets() -> Iterator[Finding]:
    """The targets of schedules that cannot be loaded."""
    for schedule in load_schedules().values():
        try:
            target.load(schedule.targets)
        except ConfigError as error:
            yield Finding(CONFIG_FILE, 0, f"schedule {schedule.name}: {error}")


def _finding(name: str, message: str) -> Finding:
    return Finding(CONFIG_FILE, _line_of(name) if name else 0, message)


def _line_of(name: str) -> int:
    """The line of a top-level key or of a table. 0: not found."""
    written = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(name)}[\"']?\s*[=.\]]")
    for number, line in enumerate(Path(CONFIG_FILE).read_text("utf-8").splitlines(), 1):
        if written.match(line):
            return number
    return 0


def _bare(error: ConfigError) -> str:
    return str(error).removeprefix(f"{CONFIG_FILE}: ")
