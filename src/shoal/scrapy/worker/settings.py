"""Derives Shoal's settings from those of a Scrapy project.

Every setting of Shoal can be given as SHOAL_<NAME>; the name of the crawl is SHOAL_CRAWL. What is
not given follows from the settings that Scrapy and scrapy-redis know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from shoal import config
from shoal.config import SETTINGS, Settings
from shoal.core.policy import MAX_RETRIES, parse_rate
from shoal.errors import ConfigError
from shoal.scrapy.connection import address_of
from shoal.scrapy.reading import number, switch, whole_number
from shoal.scrapy.worker.items import ResultsPipeline

DEFAULT_FINGERPRINTER = "scrapy.utils.request.RequestFingerprinter"

MEMBERSHIP = "SHOAL_MEMBERSHIP"
"""The setting that holds the Membership, where there is one."""

UNLIMITED = 1000
"""Requests in flight where Scrapy's settings say 0, which means no limit."""

COMMANDS_THAT_LOOK = frozenset({"shell", "fetch", "view", "parse", "check", "bench"})


_OF_OTHERS = {
    "allowed_hosts": ": use allowed_domains",
    "max_depth": ": use DEPTH_LIMIT",
    "max_pages_per_host": "",
    "max_pages_per_shape": "",
    "robots": ": use ROBOTSTXT_OBEY",
    "drop_params": ": use REQUEST_FINGERPRINTER_CLASS",
    "user_agent": ": use USER_AGENT",
    "timeout_s": ": use DOWNLOAD_TIMEOUT",
    "max_body_bytes": ": use DOWNLOAD_MAXSIZE",
    "canonical": "",
    "simhash": "",
    "previous": ": see HTTPCACHE_POLICY",
    "archive": ": its pages are not archived",
}
"""Settings of Shoal that have no meaning in a Scrapy project, and what replaces them."""


class Membership(msgspec.Struct, frozen=True):
    """Tells a process that it was started by `shoal crawl` or `shoal worker`: that command begins
    the crawl and has worked out its settings."""

    settings: Settings
    crawl: str
    brings_seeds: bool = True
    """Whether the spider's first requests are to be queued."""
    until_finished: bool = True
    """Whether the spider closes when the crawl is over."""


def membership_of(settings: BaseSettings) -> Membership | None:
    """Return the membership, if `shoal` has started this process."""
    given = settings.get(MEMBERSHIP)
    return given if isinstance(given, Membership) else None


def settings_of(settings: BaseSettings, spider: type[Spider]) -> Settings:
    """Return Shoal's settings for a spider of a project."""
    if (membership := membership_of(settings)) is not None:
        return membership.settings
    environ = dict(os.environ)
    if "SHOAL_CRAWL" in environ:
        environ["SHOAL_NAME"] = environ["SHOAL_CRAWL"]
    return config.load(spider=values_of(settings, spider), environ=environ)


def values_of(settings: BaseSettings, spider: type[Spider]) -> dict[str, Any]:
    """Return what the project sets, by the names of Shoal's settings."""
    values: dict[str, Any] = {
        "name": settings.get("SHOAL_CRAWL") or spider.name,
        "rate": _rate(settings, spider),
        "concurrency": whole_number(settings, "CONCURRENT_REQUESTS") or UNLIMITED,
        "concurrency_per_host": whole_number(settings, "CONCURRENT_REQUESTS_PER_DOMAIN")
        or UNLIMITED,
        "max_retries": min(whole_number(settings, "RETRY_TIMES"), MAX_RETRIES),
        "robots": False,  # Scrapy's own middleware handles robots.txt.
        "fingerprints": _fingerprints(settings),
    }
    if address := address_of(settings):
        values["frontier"] = address
    for name in SETTINGS:
        setting = config.variable_of(name)
        if (value := settings.get(setting)) is not None:
            values[name] = value
            _check(setting, name, value)
    return values


def _check(setting: str, name: str, value: Any) -> None:
    """Check one setting by itself, so that the error can name it. Raises ConfigError."""
    try:
        config.build({name: value})
    except ConfigError as error:
        shown = "" if SETTINGS[name].is_secret else f" = {value!r}"
        raise ConfigError(
            f"{setting}{shown}: {str(error).removeprefix(name).lstrip(': ')}"
        ) from None


def refuse_meaningless(settings: Settings) -> None:
    """Raise ConfigError for settings of Shoal's own fetcher and reader: Scrapy sends requests and
    reads pages itself, so they would have no effect."""
    values, untouched = config.by_name(settings), config.by_name(config.build({"robots": False}))
    for name, instead in _OF_OTHERS.items():
        if values[name] != untouched[name]:
            raise ConfigError(f"{name} has no meaning in a Scrapy project{instead}")


def only_looks(command_line: Sequence[str]) -> bool:
    """Whether this is one of Scrapy's commands that look at a page and crawl nothing. Their
    callbacks are functions that cannot be queued."""
    return any(
        Path(program).name == "scrapy" and word in COMMANDS_THAT_LOOK
        for program, word in pairwise(command_line[:4])
    )


def crawl_of(project: BaseSettings, settings: Settings, spider: Spider) -> str:
    """Return the name of the crawl that a spider takes part in."""
    if (membership := membership_of(project)) is not None:
        return membership.crawl
    return crawl_name(settings.name or spider.name, type(spider), vars(spider))


def crawl_name(pattern: str, spider: type[Spider], attributes: Mapping[str, Any]) -> str:
    """Return the name of a crawl, with the spider's arguments filled in: `shop` or
    `shop-%(category)s`. Raises ConfigError."""
    try:
        return pattern % {**attributes, "spider": spider.name}
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"SHOAL_CRAWL: {pattern!r} cannot be filled in: {error}") from None


def keeps_results(settings: BaseSettings) -> bool:
    """Whether items and the page log go to Shoal's results."""
    if settings.get("SHOAL_RESULTS") or membership_of(settings):
        return True
    # As Scrapy reads it: a pipeline whose order is None is switched off.
    used = build_component_list(settings.getwithbase("ITEM_PIPELINES"))
    return any(load_object(pipeline) is ResultsPipeline for pipeline in used)


def _rate(settings: BaseSettings, spider: type[Spider]) -> str:
    """Return the rate for the whole fleet. A fixed delay takes precedence over AutoThrottle, as the
    stronger promise."""
    delay = getattr(spider, "download_delay", None)  # Old spiders have this attribute.
    name = "DOWNLOAD_DELAY" if delay is None else "download_delay"
    given = settings.get(name, 0) if delay is None else delay
    if (delay_s := number(name, given)) > 0:
        try:
            return rate_for(delay_s)
        except ConfigError as error:
            raise ConfigError(f"{name} = {given!r}: {error}") from None
    return "auto" if switch(settings, "AUTOTHROTTLE_ENABLED") else "none"


def rate_for(delay_s: float) -> str:
    """Return a pause between two requests as a rate. Raises ConfigError if it is too long."""
    for unit, period_s in (("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        count = round(period_s / delay_s, 6)
        if count == int(count) and count >= 1:
            return f"{int(count)}/{unit}"
    text = f"{3600.0 / delay_s:.6f}".rstrip("0")
    rate = f"{text}0/h" if text.endswith(".") else f"{text}/h"
    parse_rate(rate)  # A delay of months is a mistake, and raises.
    return rate


def _fingerprints(settings: BaseSettings) -> str:
    own = settings.get("REQUEST_FINGERPRINTER_CLASS")
    return "scrapy" if own in (None, DEFAULT_FINGERPRINTER) else "project"
