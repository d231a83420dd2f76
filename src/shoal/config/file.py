"""Reads shoal.toml: the whole file, the tables that are not settings, the table of one spider."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from shoal.config.settings import SETTINGS, build
from shoal.core.near_names import meant, no_such
from shoal.core.pool_config import TABLES
from shoal.core.session_config import TABLES as SESSION_TABLES
from shoal.errors import ConfigError

CONFIG_FILE = "shoal.toml"
SCHEDULES, FEEDS, ALERTS, PRICES, SPIDERS = "schedule", "feed", "alerts", "prices", "spider"
"""Names of the tables that are not settings. [[schedule]] is read in coordinator/schedules.py,
[[feed]] in feeds/tables.py, [alerts] in alerts/config.py, [prices] in insight/advise/prices.py and
[spider.NAME] below. [proxies.NAME] and [sessions.NAME] are not settings either: see
core/pool_config.py and core/session_config.py."""
KEYS = frozenset({*SETTINGS, SCHEDULES, FEEDS, ALERTS, PRICES, SPIDERS, TABLES, SESSION_TABLES})
"""All that may stand at the top of the file."""


def read_file(folder: Path | None = None) -> dict[str, Any]:
    """The contents of shoal.toml; empty if there is no such file. Raises ConfigError."""
    path = (folder or Path()) / CONFIG_FILE
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name}: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path.name}: {error.strerror}") from None


def unknown_key(name: str) -> str:
    """What is wrong with a key at the top of the file that is none."""
    return f"no setting {name!r:.80}{meant(name, KEYS)}"


def tables(name: str, folder: Path | None = None) -> list[Any]:
    """The tables [[name]] of shoal.toml, unchecked. Raises ConfigError if [[name]] is no list."""
    found = read_file(folder).get(name, [])
    if not isinstance(found, list):
        raise ConfigError(f"{CONFIG_FILE}: write [[{name}]], with two brackets")
    return found


def of_spider(name: str, folder: Path | None = None) -> dict[str, Any]:
    """The settings in the table [spider.NAME] of shoal.toml. Raises ConfigError."""
    found = read_file(folder).get(SPIDERS, {})
    where = f"{CONFIG_FILE}: [{SPIDERS}.{name}]"
    table = found.get(name, {}) if isinstance(found, dict) else None
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table: write its name in one pair of brackets")
    for key in table.keys() - SETTINGS.keys():
        raise ConfigError(f"{where} has {no_such('setting', key, SETTINGS)}")
    try:
        build(table)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return table
