"""One typed configuration: defaults < shoal.toml < the spider < SHOAL_* < options.

`Rules` are agreed on by the whole fleet and live in the frontier with the crawl; the rest of
`Settings` is each process's own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shoal.core.policy import MAX_LOSSES, MAX_RETRIES, parse_duration, parse_rate
from shoal.core.urls import TRACKING_PARAMETERS
from shoal.errors import ConfigError
from shoal.version import __version__

CONFIG_FILE = "shoal.toml"
SCHEDULES = "schedule"
"""The tables of the file that are no settings: see coordinator/schedules.py."""
ENV_PREFIX = "SHOAL_"
DEFAULT_STORE = "sqlite:///shoal.db"
USER_AGENT = f"shoal/{__version__} (web crawler)"

LISTS = frozenset({"allowed_hosts", "drop_params"})
SWITCHES = frozenset({"robots", "canonical", "simhash", "allow_private", "json_logs"})

SEEN = ("exact", "bloom", "auto")
"""How known URLs can be remembered."""

HISTORY = ("changed", "always", "off")
"""Which readings of an item can be kept beside its current state."""

FINGERPRINTS = ("shoal", "scrapy", "project")
"""Who says which URLs are the same: Shoal, Scrapy, or the fingerprinter of a Scrapy project."""

ARCHIVE_FORMATS = ("blobs", "warc")

PositiveInt = Annotated[int, Meta(ge=1)]


class Rules(msgspec.Struct, kw_only=True, frozen=True):
    """What a crawl may do. The same for every worker of the fleet."""

    rate: Annotated[
        str, Meta(description="Requests per host, for the whole fleet: 2/s, 30/m, auto, none")
    ] = "1/s"
    concurrency_per_host: Annotated[
        int, Meta(ge=1, description="Requests in flight per host, for the whole fleet")
    ] = 16
    max_pages: Annotated[PositiveInt | None, Meta(description="Stop after this many pages")] = None
    max_depth: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Follow links at most this deep; seeds are at 0"),
    ] = None
    max_retries: Annotated[
        int, Meta(ge=0, description="Tries after the first one, before a task is dead; at most 254")
    ] = 3
    max_links_per_page: Annotated[
        int, Meta(ge=1, description="Links of one page that are followed; the rest is counted")
    ] = 20_000
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(description="Hosts (and what is below them) that may be crawled; empty: all"),
    ] = ()
    robots: Annotated[bool, Meta(description="Obey robots.txt")] = True
    drop_params: Annotated[
        tuple[str, ...],
        Meta(description="Query parameters that do not count when URLs are compared"),
    ] = TRACKING_PARAMETERS
    fingerprints: Annotated[
        str,
        Meta(description="Who says which requests are the same: shoal, scrapy, or project"),
    ] = "shoal"
    lease_s: Annotated[
        float, Meta(gt=0, description="Seconds after which a silent worker's tasks go to another")
    ] = 30.0
    max_losses: Annotated[
        int,
        Meta(ge=1, description="Workers a task may lose before it is dead as poison, at most 255"),
    ] = 5

    seen: Annotated[
        str,
        Meta(description="How known URLs are remembered; auto: exact up to 10 million, then bloom"),
    ] = "exact"
    seen_error: Annotated[
        float,
        Meta(gt=0, lt=0.5, description="Share of new URLs a Bloom filter may take for known ones"),
    ] = 0.001
    seen_for: Annotated[
        str | None, Meta(description="Forget known URLs after this time (7d, 12h); default: never")
    ] = None
    history: Annotated[
        str,
        Meta(description="Readings of an item that are kept: changed, always, off"),
    ] = "changed"
    refresh_after: Annotated[
        str | None,
        Meta(description="Leave items alone that were read less than this before (1h, 7d)"),
    ] = None
    canonical: Annotated[
        bool, Meta(description="Take a page's rel=canonical for another address of the page")
    ] = False
    simhash: Annotated[
        bool,
        Meta(description="Keep a simhash of each page, to find those that are alike"),
    ] = False
    previous: Annotated[
        str | None,
        Meta(description="An earlier crawl: what has not changed since is not fetched again"),
    ] = None

    def __post_init__(self) -> None:
        parse_rate(self.rate)
        if self.fingerprints not in FINGERPRINTS:
            allowed = ", ".join(FINGERPRINTS)
            raise ConfigError(f"fingerprints: {self.fingerprints!r} is none of {allowed}")
        if self.history not in HISTORY:
            raise ConfigError(f"history: {self.history!r} is none of {', '.join(HISTORY)}")
        if self.refresh_after is not None:
            parse_duration(self.refresh_after)
        if self.seen not in SEEN:
            raise ConfigError(f"seen: {self.seen!r} is none of {', '.join(SEEN)}")
        if self.seen_for is not None:
            parse_duration(self.seen_for)


class Settings(Rules, kw_only=True, frozen=True):
    """All that can be set: each field is an option, a SHOAL_ variable and a shoal.toml key."""

    frontier: Annotated[str, Meta(description="Where the queue is")] = DEFAULT_STORE
    results: Annotated[str, Meta(description="Where items and the page log go")] = DEFAULT_STORE
    archive: Annotated[
        str | None, Meta(description="Where raw pages go: file:///dir, s3://bucket/prefix")
    ] = None
    archive_format: Annotated[
        str, Meta(description="How raw pages are kept: blobs (each body once) or warc")
    ] = "blobs"
    name: Annotated[str | None, Meta(description="The crawl's name; default: the spider's")] = None
    workers: Annotated[int, Meta(ge=1, description="Worker processes")] = 1
    concurrency: Annotated[int, Meta(ge=1, description="Requests in flight per worker")] = 32
    user_agent: Annotated[str, Meta(min_length=1, description="Sent with every request")] = (
        USER_AGENT
    )
    timeout_s: Annotated[float, Meta(gt=0, description="Seconds for one whole response")] = 30.0
    max_body_bytes: Annotated[
        int, Meta(ge=1, description="Longest body, before and after decompression")
    ] = 8 * 1024 * 1024
    allow_private: Annotated[bool, Meta(description="Allow private and loopback addresses")] = False
    json_logs: Annotated[bool, Meta(description="Log lines as JSON")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        # Not said of `Rules`: a crawl that is under way may have others, which hold as these.
        for name, most in (("max_retries", MAX_RETRIES), ("max_losses", MAX_LOSSES)):
            if getattr(self, name) > most:
                raise ConfigError(f"{name}: {getattr(self, name)} is more than {most}")
        if self.archive_format not in ARCHIVE_FORMATS:
            formats = ", ".join(ARCHIVE_FORMATS)
            raise ConfigError(f"archive_format: {self.archive_format!r} is none of {formats}")

    def rules(self) -> Rules:
        """The part that the whole fleet agrees on."""
        return msgspec.convert(self, Rules, from_attributes=True)


def load(
    *,
    spider: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings of this process. Later sources win; None in `options` means not given."""
    values: dict[str, Any] = {}
    values |= read_file(folder)
    values.pop(SCHEDULES, None)
    values |= spider or {}
    values |= _from_environ(environ or {})
    values |= {name: value for name, value in (options or {}).items() if value is not None}
    return build(values)


def build(values: Mapping[str, Any]) -> Settings:
    """Check values and make settings of them."""
    unknown = sorted(set(values) - set(Settings.__struct_fields__))
    if unknown:
        raise ConfigError(f"unknown setting: {', '.join(unknown)}")
    try:
        plain = {name: _plain(name, value) for name, value in values.items()}
        return msgspec.convert(plain, Settings, strict=False)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        reason, _, where = str(error).partition(" - at `$.")
        raise ConfigError(f"{where.rstrip('`') or 'settings'}: {reason}") from None


def read_file(folder: Path | None = None) -> dict[str, Any]:
    """What shoal.toml says, if there is one."""
    path = (folder or Path()) / CONFIG_FILE
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name}: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path.name}: {error.strerror}") from None


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    names = {name: ENV_PREFIX + name.upper() for name in Settings.__struct_fields__}
    return {name: environ[key] for name, key in names.items() if key in environ}


def _plain(name: str, value: Any) -> Any:
    """Lists may be written as text with commas, switches as words."""
    if not isinstance(value, str):
        return value
    if name in LISTS:
        return [part.strip() for part in value.split(",") if part.strip()]
    if name in SWITCHES:
        return {"yes": True, "on": True, "no": False, "off": False}.get(value.lower(), value)
    return value
