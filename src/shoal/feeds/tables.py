"""Reads the [[feed]] tables of shoal.toml: the feeds that run permanently."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shoal import config
from shoal.core.fields import checked
from shoal.errors import ConfigError
from shoal.feeds import open_source

_VARIABLE = "env:"


def _address(text: str) -> str:
    """The address itself, or with `env:NAME` that in the variable. Raises ConfigError."""
    if not text.startswith(_VARIABLE):
        return text
    name = text.removeprefix(_VARIABLE)
    if not os.environ.get(name):
        raise ConfigError(f"the variable {name!r} is not set")
    return os.environ[name]


def _check_address(text: str) -> None:
    open_source(_address(text))  # Only reads the address: nothing connects yet.


class Feed(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One [[feed]] table. Its address may contain a password, so it must not be shown."""

    crawl: Annotated[str, Meta(min_length=1)]
    """The crawl that gets the tasks."""
    address: Annotated[str, Meta(extra={"check": _check_address})]
    """The address of the source, as for `shoal feed`. In the file it may be env:NAME instead, the
    variable of the environment that has the address."""


def load_feeds(folder: Path | None = None) -> list[Feed]:
    """Read the feeds of shoal.toml. Raises ConfigError, which names the feed and the key."""
    feeds = list[Feed]()
    for number, table in enumerate(config.tables(config.FEEDS, folder), 1):
        where = f"{config.CONFIG_FILE}: feed {number}"
        try:
            feed = _read(table)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        for other, known in enumerate(feeds, 1):
            if known.address == feed.address:
                # Two crawls would each get only a part of the messages.
                raise ConfigError(f"{where}: address: feed {other} takes from the same queue")
        feeds.append(feed)
    return feeds


def _read(table: Any) -> Feed:
    feed = checked(table, Feed)
    return msgspec.structs.replace(feed, address=_address(feed.address))
