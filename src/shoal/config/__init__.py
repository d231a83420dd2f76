"""One typed configuration: defaults < shoal.toml < the spider < SHOAL_* < options.

`Rules` (rules.py) are shared by the whole fleet and stored with the crawl. `Settings` (settings.py)
belong to one process and may hold passwords. The type of a field declares everything about its
setting: default, bounds, description. file.py reads shoal.toml, environment.py reads the SHOAL_*
variables, and loading.py merges all sources.
"""

from __future__ import annotations

from shoal.config.environment import ENV_PREFIX, FILE_SUFFIX, of_variables, variable_of
from shoal.config.file import (
    ALERTS,
    CONFIG_FILE,
    FEEDS,
    KEYS,
    PRICES,
    SCHEDULES,
    SPIDERS,
    of_spider,
    read_file,
    tables,
    unknown_key,
)
from shoal.config.loading import load, with_groups, with_pools
from shoal.config.rules import Duration, History, Rules, read_rules
from shoal.config.settings import (
    DEFAULT_STORE,
    SETTINGS,
    USER_AGENT,
    ArchiveFormat,
    PublishFormat,
    Settings,
    build,
    by_name,
)

__all__ = [
    "ALERTS",
    "CONFIG_FILE",
    "DEFAULT_STORE",
    "ENV_PREFIX",
    "FEEDS",
    "FILE_SUFFIX",
    "KEYS",
    "PRICES",
    "SCHEDULES",
    "SETTINGS",
    "SPIDERS",
    "USER_AGENT",
    "ArchiveFormat",
    "Duration",
    "History",
    "PublishFormat",
    "Rules",
    "Settings",
    "build",
    "by_name",
    "load",
    "of_spider",
    "of_variables",
    "read_file",
    "read_rules",
    "tables",
    "unknown_key",
    "variable_of",
    "with_groups",
    "with_pools",
]
