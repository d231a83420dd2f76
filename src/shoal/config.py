"""One typed configuration: defaults < shoal.toml < the spider < SHOAL_* < options.

`Rules` are agreed on by the whole fleet and are stored with the crawl. `Settings` belong to one
process and may hold passwords. The types of their fields say all there is to know of a setting.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from shoal.core.fields import Field, at_most, checked, explained, fields_of
from shoal.core.identities import NO_SESSION
from shoal.core.media_types import check_patterns
from shoal.core.near_names import no_such
from shoal.core.policy import MAX_BLOCKS, MAX_LOSSES, MAX_RETRIES, parse_duration, parse_rate
from shoal.core.pool_config import TABLES, PoolConfig, pool_of, read_tables
from shoal.core.session_config import (
    ACCOUNTS,
    SessionConfig,
    accounts_at,
    check_group_name,
    read_session_tables,
)
from shoal.core.session_config import TABLES as SESSION_TABLES
from shoal.core.urls import TRACKING_PARAMETERS
from shoal.errors import BadField, ConfigError
from shoal.version import __version__

CONFIG_FILE = "shoal.toml"
SCHEDULES, FEEDS, ALERTS, PRICES, SPIDERS = "schedule", "feed", "alerts", "prices", "spider"
"""Tables of the file that are no settings: see coordinator/schedules.py, feeds/tables.py,
alerts/config.py and insight/advise/prices.py. [proxies.NAME] and [sessions.NAME] are others: see
core/pool_config.py and core/session_config.py."""
ENV_PREFIX = "SHOAL_"
FILE_SUFFIX = "_FILE"
MAX_FILE_BYTES = 8192
"""Of a file that a variable names. An address with many servers is still shorter."""
DEFAULT_STORE = "sqlite:///shoal.db"
USER_AGENT = f"shoal/{__version__} (web crawler)"

RateText = Annotated[str, Meta(extra={"check": parse_rate})]
Duration = Annotated[str, Meta(extra={"check": parse_duration, "stands_for": "TIME"})]
Hidden = Annotated[str, Meta(extra={"is_secret": True})]
"""It may have a password in it, so its value is not shown."""
Address = Annotated[Hidden, Meta(extra={"is_in_files": True, "stands_for": "ADDRESS"})]
"""Of a store. Where its password must be in no environment, a variable names a file with it."""

ForeignName = Annotated[str, Meta(extra={"stands_for": "NAME"})]

Fingerprints = Literal["shoal", "scrapy", "project"]
"""Shoal, Scrapy, or the fingerprinter of a Scrapy project."""
Seen = Literal["exact", "bloom", "auto"]
History = Literal["changed", "always", "off"]
ArchiveFormat = Literal["blobs", "warc"]
Cookies = Literal["off", "visit"]
PublishFormat = Literal["plain", "celery", "messenger"]
Table = TypeVar("Table")


class Rules(msgspec.Struct, kw_only=True, frozen=True):
    """What a crawl may do. The same for every worker of the fleet."""

    rate: Annotated[
        RateText, Meta(description="Requests per host, for the whole fleet: 2/s, 30/m, auto, none")
    ] = "1/s"
    concurrency_per_host: Annotated[
        int, Meta(ge=1, description="Requests in flight per host, for the whole fleet")
    ] = 16
    max_pages: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Stop after this many pages", extra={"unset": "no limit"}),
    ] = None
    max_depth: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Follow links at most this deep; seeds are at depth 0",
            extra={"unset": "no limit"},
        ),
    ] = None
    max_pages_per_host: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Follow links to at most this many pages of each host"),
    ] = None
    max_pages_per_shape: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Follow links to at most this many pages of a host whose addresses differ"
            " only in numbers, ids and values, like /calendar/N/N?day"
        ),
    ] = None
    max_retries: Annotated[
        int,
        Meta(
            ge=0,
            description=f"Retries before a failing task is declared dead, at most {MAX_RETRIES}",
            extra={"check": at_most(MAX_RETRIES)},
        ),
    ] = 3
    max_links_per_page: Annotated[
        int, Meta(ge=1, description="Links followed from one page; the rest are only counted")
    ] = 20_000
    stop_after_errors: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Pause the crawl whenever this many handlers have raised",
            extra={"unset": "never"},
        ),
    ] = None
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(description="Hosts that may be crawled, subdomains included; if empty, all of them"),
    ] = ()
    robots: Annotated[bool, Meta(description="Obey robots.txt")] = True
    drop_params: Annotated[
        tuple[str, ...],
        Meta(description="Query parameters that are ignored when URLs are compared"),
    ] = TRACKING_PARAMETERS
    fingerprints: Annotated[
        Fingerprints, Meta(description="What decides whether two requests are the same")
    ] = "shoal"
    cookies: Annotated[
        Cookies,
        Meta(
            description="Which requests keep cookies: none, or visit: redirects and chains of tasks"
        ),
    ] = "off"
    lease_s: Annotated[
        float, Meta(gt=0, description="Seconds after which a silent worker's tasks go to another")
    ] = 30.0
    max_losses: Annotated[
        int,
        Meta(
            ge=1,
            description="Workers that may die on a task before it is declared dead, "
            f"at most {MAX_LOSSES}",
            extra={"check": at_most(MAX_LOSSES)},
        ),
    ] = 5

    pools: Annotated[
        tuple[str, ...],
        Meta(
            description="Pools of exits that its tasks may name; the tables [proxies.NAME]",
            extra={"unset": "all"},
        ),
    ] = ()
    proxy_pool: Annotated[
        str | None, Meta(description="The pool of exits for tasks that name none")
    ] = None
    sessions: Annotated[
        tuple[str, ...],
        Meta(
            description="Groups of accounts that its tasks may name; the tables [sessions.NAME]",
            extra={"unset": "all"},
        ),
    ] = ()
    session: Annotated[
        str | None,
        Meta(description="The accounts for tasks that name none: a group, or one account of it"),
    ] = None
    max_blocks: Annotated[
        int,
        Meta(
            ge=0,
            description="Blocks by a site before a task that goes by exits is declared dead, "
            f"at most {MAX_BLOCKS}",
            extra={"check": at_most(MAX_BLOCKS)},
        ),
    ] = 5

    seen: Annotated[
        Seen,
        Meta(
            description="How known URLs are remembered; auto is exact up to 10 million, then bloom"
        ),
    ] = "exact"
    seen_error: Annotated[
        float,
        Meta(
            gt=0,
            lt=0.5,
            description="Share of new URLs that a Bloom filter may take for known ones",
        ),
    ] = 0.001
    seen_for: Annotated[
        Duration | None,
        Meta(description="Forget known URLs after this time (12h, 7d)", extra={"unset": "never"}),
    ] = None
    history: Annotated[
        History, Meta(description="Which readings of an item are kept in its history")
    ] = "changed"
    refresh_after: Annotated[
        Duration | None,
        Meta(description="Do not update items that were read less than this long ago (1h, 7d)"),
    ] = None
    canonical: Annotated[
        bool, Meta(description="Treat a page's rel=canonical as another address of the page")
    ] = False
    simhash: Annotated[
        bool, Meta(description="Store a simhash of each page, to find pages that are alike")
    ] = False
    file_types: Annotated[
        tuple[str, ...],
        Meta(
            description="Media types of files that are kept: image/*, application/pdf; if empty,"
            " all of them",
            extra={"check": check_patterns},
        ),
    ] = ()
    previous: Annotated[
        str | None,
        Meta(description="An earlier crawl; pages unchanged since then are not fetched again"),
    ] = None

    args: dict[str, Any] = {}
    """What the spider is told: see spider/arguments.py. No setting: `-a` of those who begin it."""


class Settings(msgspec.Struct, kw_only=True, frozen=True):
    """What one process is told: its own settings, and the rules of the crawls that it begins.

    Each field, and each rule, is an option, a SHOAL_ variable and a key of shoal.toml.
    """

    rules: Rules = Rules()
    """Only for whoever begins a crawl. A worker gets the rules from the frontier."""
    proxy_pools: dict[str, PoolConfig] = {}
    """The tables [proxies.NAME], and the pool of `proxies`, if that is a file."""
    session_groups: dict[str, SessionConfig] = {}
    """The tables [sessions.NAME], and the group that `accounts` makes."""

    frontier: Annotated[Address, Meta(description="Where the queue is")] = DEFAULT_STORE
    state: Annotated[
        Address | None,
        Meta(description="The Redis that schedules, if the frontier is a broker: amqp://, sqs://"),
    ] = None
    results: Annotated[Address, Meta(description="Where items and the page log go")] = DEFAULT_STORE
    archive: Annotated[
        Address | None, Meta(description="Where raw pages go: file:///dir, s3://bucket/prefix")
    ] = None
    archive_format: Annotated[
        ArchiveFormat,
        Meta(description="How raw pages are stored; blobs stores each body only once"),
    ] = "blobs"
    file_store: Annotated[
        Address | None,
        Meta(
            description="Where files of items go, if not into the archive; without both, into the"
            " folder shoal-files beside the SQLite results"
        ),
    ] = None
    publish: Annotated[
        Address | None,
        Meta(
            description="Tell a broker of items, dead tasks and the end:"
            " amqp://, sqs://, redis-stream://, redis://"
        ),
    ] = None
    publish_format: Annotated[
        PublishFormat, Meta(description="Who reads what is published: anybody, Celery or Messenger")
    ] = "plain"
    publish_item: Annotated[
        ForeignName | None, Meta(description="The Celery task or Messenger class of an item")
    ] = None
    publish_dead: Annotated[
        ForeignName | None, Meta(description="The Celery task or Messenger class of a dead task")
    ] = None
    publish_finished: Annotated[
        ForeignName | None, Meta(description="The Celery task or Messenger class of a crawl's end")
    ] = None
    name: Annotated[str | None, Meta(description="The crawl's name, if not the spider's")] = None
    workers: Annotated[int, Meta(ge=1, description="Number of worker processes")] = 1
    concurrency: Annotated[int, Meta(ge=1, description="Requests in flight per worker")] = 32
    user_agent: Annotated[
        str, Meta(min_length=1, description="The User-Agent header of every request")
    ] = USER_AGENT
    timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds that one response may take, body included")
    ] = 30.0
    max_body_bytes: Annotated[
        int, Meta(ge=1, description="Largest body in bytes, before and after decompression")
    ] = 8 * 1024 * 1024
    max_file_bytes: Annotated[
        int, Meta(ge=1, description="Largest file of an item in bytes, as for bodies of pages")
    ] = 64 * 1024 * 1024
    allow_private: Annotated[
        bool, Meta(description="Allow requests to private and loopback addresses")
    ] = False
    proxies: Annotated[
        Hidden | None, Meta(description="A file of proxies, or a pool: a table [proxies.NAME]")
    ] = None
    accounts: Annotated[
        Hidden | None, Meta(description="A file of accounts for the session of the crawl")
    ] = None
    encrypt_key: Annotated[
        Hidden | None,
        Meta(
            description="Where the key is by which cookies of accounts are encrypted: file:PATH"
            " or env:NAME"
        ),
    ] = None
    spider_version: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        Meta(description="What workers tell of the spider's code, if not a hash of its files"),
    ] = None
    plugins: Annotated[
        tuple[str, ...],
        Meta(description="Classes with hooks for all spiders: package.module:Class, file.py:Class"),
    ] = ()
    json_logs: Annotated[bool, Meta(description="Write log lines as JSON")] = False


_NO_SETTINGS = ("args", "rules", "proxy_pools", "session_groups")
SETTINGS: dict[str, Field] = {
    name: field
    for name, field in (fields_of(Rules) | fields_of(Settings)).items()
    if name not in _NO_SETTINGS
}
"""Every setting by its name, which only one of the two structs has."""


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"{ENV_PREFIX}{name.upper()}"


def load(
    *,
    spider: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings of this process. Later sources win; None in `options` means not given. Raises
    ConfigError, which says what wrote the value that is wrong."""
    of_file = read_file(folder)
    for of_services in (SCHEDULES, FEEDS, ALERTS, PRICES, SPIDERS):
        of_file.pop(of_services, None)
    proxies = of_file.pop(TABLES) if isinstance(of_file.get(TABLES), dict) else {}
    pools = _of_tables(proxies, read_tables)
    sessions = of_file.pop(SESSION_TABLES) if isinstance(of_file.get(SESSION_TABLES), dict) else {}
    groups = _of_tables(sessions, read_session_tables)
    of_environment = of_variables(environ or {})
    given = {name: value for name, value in (options or {}).items() if value is not None}
    sources = (of_file, spider or {}, of_environment, given)
    values: dict[str, Any] = {}
    for source in sources:
        values |= _with_pool(source, pools)
    try:
        return with_groups(with_pools(build(values), pools), groups)
    except BadField as error:
        places = (CONFIG_FILE, "the spider", variable_of(error.field), "")
        raise _with_place(error, dict(zip(places, sources, strict=True))) from None


def _with_place(error: BadField, sources: Mapping[str, Mapping[str, Any]]) -> ConfigError:
    """What is wrong, and where it is written: in the last source that has it."""
    places = [place for place, values in sources.items() if error.field in values]
    return ConfigError(f"{places[-1]}: {error}" if places and places[-1] else str(error))


def of_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What the environment says. SHOAL_RESULTS_FILE and its like name files: so containers, and
    systemd, hand over passwords. Raises ConfigError."""
    values = {name: environ[at] for name in SETTINGS if (at := variable_of(name)) in environ}
    for name in (name for name, setting in SETTINGS.items() if setting.is_in_files):
        variable = variable_of(name) + FILE_SUFFIX
        if not (path := environ.get(variable)):
            continue
        if name in values:
            raise ConfigError(f"{variable_of(name)} and {variable} are both set")
        values[name] = _in_file(variable, path)
    return values


def _in_file(variable: str, path: str) -> str:
    """What a file says, without a word of it in an error: it may have a password."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1).decode("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{variable}: {path}: {error.strerror}") from None
    except ValueError:  # Not UTF-8, or no path at all.
        raise ConfigError(f"{variable}: cannot be read as text") from None
    if not text or len(text.splitlines()) > 1 or len(text) > MAX_FILE_BYTES:
        raise ConfigError(f"{variable}: {path}: write one address, in one line")
    return text


def _of_tables(tables: Any, read: Callable[[Any], dict[str, Table]]) -> dict[str, Table]:
    try:
        return read(tables)
    except ConfigError as error:
        raise ConfigError(f"{CONFIG_FILE}: {error}") from None


def _with_pool(source: Mapping[str, Any], pools: Collection[str]) -> Mapping[str, Any]:
    """What `proxies` means for `proxy_pool`, which the same source may still set otherwise."""
    chosen = source.get(TABLES)
    if not chosen or not isinstance(chosen, str):
        return source
    return {"proxy_pool": chosen if chosen in pools else TABLES, **source}


def with_pools(settings: Settings, pools: Mapping[str, PoolConfig]) -> Settings:
    """The settings with these pools, and with that of `proxies`, if that is the name of none. Tasks
    may name all of them, unless the settings say which."""
    known = dict(pools)
    if settings.proxies and settings.proxies not in pools:
        known[TABLES] = pool_of(settings.proxies)
    rules = settings.rules
    if not rules.pools:
        rules = msgspec.structs.replace(rules, pools=tuple(sorted(known)))
    return msgspec.structs.replace(settings, rules=rules, proxy_pools=known)


def with_groups(settings: Settings, groups: Mapping[str, SessionConfig]) -> Settings:
    """The settings with these groups of accounts, and with those of `accounts` in the group of the
    crawl's session; without one, they are a group of their own, and the session. Tasks may name all
    of them, unless the settings say which."""
    known, rules = dict(groups), settings.rules
    if settings.accounts and rules.session != NO_SESSION:
        rules = msgspec.structs.replace(rules, session=rules.session or ACCOUNTS)
        own, made = _group_of(rules), accounts_at(settings.accounts)
        if own in known:
            made = msgspec.structs.replace(known[own], accounts=made.accounts)
        known[own] = made
    if not rules.sessions:
        rules = msgspec.structs.replace(rules, sessions=tuple(sorted(known)))
    return msgspec.structs.replace(settings, rules=rules, session_groups=known)


def _group_of(rules: Rules) -> str:
    """The group of the crawl's session."""
    group = (rules.session or "").partition("#")[0]
    try:
        check_group_name(group)
    except ConfigError as error:
        raise ConfigError(f"session: {error}") from None
    return group


def build(values: Mapping[str, Any]) -> Settings:
    """Check values and make settings of them. Raises ConfigError."""
    unknown = sorted(set(values) - set(SETTINGS))
    if unknown:
        raise BadField(unknown[0], f"unknown setting: {', '.join(unknown)}")
    read = {name: SETTINGS[name].from_text(value) for name, value in values.items()}
    of_crawl = {name: value for name, value in read.items() if name in fields_of(Rules)}
    of_process = {name: value for name, value in read.items() if name not in of_crawl}
    rules = checked(of_crawl, Rules, strict=False)
    return msgspec.structs.replace(checked(of_process, Settings, strict=False), rules=rules)


def by_name(settings: Settings) -> dict[str, Any]:
    """The value of every setting."""
    values = msgspec.structs.asdict(settings)
    values = msgspec.structs.asdict(values["rules"]) | values
    return {name: values[name] for name in SETTINGS}


_decode_rules = msgspec.json.Decoder(Rules).decode


def read_rules(stored: str) -> Rules:
    """The rules that are stored with a crawl. Raises ConfigError for those of a newer Shoal that
    this one cannot follow."""
    try:
        return _decode_rules(stored)
    except msgspec.ValidationError as error:
        raise explained(error, msgspec.json.decode(stored), Rules) from None


def tables(name: str, folder: Path | None = None) -> list[Any]:
    """The tables [[name]] of shoal.toml, as they are written there."""
    found = read_file(folder).get(name, [])
    if not isinstance(found, list):
        raise ConfigError(f"{CONFIG_FILE}: write [[{name}]], with two brackets")
    return found


def of_spider(name: str, folder: Path | None = None) -> dict[str, Any]:
    """What the table [spider.NAME] of shoal.toml sets for one spider. Raises ConfigError."""
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
