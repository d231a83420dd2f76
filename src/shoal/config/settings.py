"""The settings of one process, and all settings by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from shoal.config.rules import Rules
from shoal.core.fields import Field, checked, fields_of
from shoal.core.near_names import meant
from shoal.core.pool_config import PoolConfig
from shoal.core.session_config import SessionConfig
from shoal.errors import BadField
from shoal.version import __version__

DEFAULT_STORE = "sqlite:///shoal.db"
USER_AGENT = f"shoal/{__version__} (web crawler)"

Hidden = Annotated[str, Meta(extra={"is_secret": True})]
"""A setting that may contain a password, so its value is not shown."""
Address = Annotated[Hidden, Meta(extra={"is_in_files": True, "stands_for": "ADDRESS"})]
"""The address of a store. If its password must not be in the environment, SHOAL_<NAME>_FILE names a
file that holds the address."""

ForeignName = Annotated[str, Meta(extra={"stands_for": "NAME"})]

ArchiveFormat = Literal["blobs", "warc"]
PublishFormat = Literal["plain", "celery", "messenger"]


class Settings(msgspec.Struct, kw_only=True, frozen=True):
    """The settings of one process, and the rules of the crawls that it begins.

    Each field and each rule is an option, a SHOAL_ variable and a key of shoal.toml.
    """

    rules: Rules = Rules()
    """Used only by the process that begins a crawl. A worker gets the rules from the frontier."""
    proxy_pools: dict[str, PoolConfig] = {}
    """The pools of the tables [proxies.NAME], and the pool of `proxies` if that is a file."""
    session_groups: dict[str, SessionConfig] = {}
    """The groups of the tables [sessions.NAME], and the group that `accounts` makes."""

    frontier: Annotated[Address, Meta(description="Where the queue is stored")] = DEFAULT_STORE
    state: Annotated[
        Address | None,
        Meta(
            description="The Redis server that does the scheduling when the frontier is a broker"
            " (amqp://, sqs://)"
        ),
    ] = None
    results: Annotated[Address, Meta(description="Where items and the page log are stored")] = (
        DEFAULT_STORE
    )
    archive: Annotated[
        Address | None,
        Meta(description="Where raw pages are stored: file:///dir, s3://bucket/prefix"),
    ] = None
    archive_format: Annotated[
        ArchiveFormat,
        Meta(description="How to store raw pages; blobs stores each distinct body only once"),
    ] = "blobs"
    file_store: Annotated[
        Address | None,
        Meta(
            description="Where the files of items are stored, if not in the archive; with"
            " neither, in the folder shoal-files beside the SQLite results"
        ),
    ] = None
    publish: Annotated[
        Address | None,
        Meta(
            description="A broker to notify of items, dead tasks and the end of the crawl:"
            " amqp://, sqs://, redis-stream://, redis://"
        ),
    ] = None
    publish_format: Annotated[
        PublishFormat,
        Meta(description="Who the messages are for: any program, Celery or Messenger"),
    ] = "plain"
    publish_item: Annotated[
        ForeignName | None, Meta(description="The Celery task or Messenger class for an item")
    ] = None
    publish_dead: Annotated[
        ForeignName | None, Meta(description="The Celery task or Messenger class for a dead task")
    ] = None
    publish_finished: Annotated[
        ForeignName | None,
        Meta(description="The Celery task or Messenger class for the end of a crawl"),
    ] = None
    name: Annotated[str | None, Meta(description="The crawl's name, if not the spider's")] = None
    workers: Annotated[int, Meta(ge=1, description="Number of worker processes")] = 1
    concurrency: Annotated[
        int, Meta(ge=1, description="Maximum concurrent requests per worker")
    ] = 32
    user_agent: Annotated[str, Meta(min_length=1, description="The User-Agent header to send")] = (
        USER_AGENT
    )
    timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds allowed for each response, including its body")
    ] = 30.0
    max_body_bytes: Annotated[
        int,
        Meta(ge=1, description="Maximum size of a body in bytes, before and after decompression"),
    ] = 8 * 1024 * 1024
    max_file_bytes: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum size of an item's file in bytes, before and after decompression",
        ),
    ] = 64 * 1024 * 1024
    allow_private: Annotated[
        bool, Meta(description="Allow requests to private and loopback addresses")
    ] = False
    proxies: Annotated[
        Hidden | None,
        Meta(description="A file of proxies, or the name of a pool: a [proxies.NAME] table"),
    ] = None
    accounts: Annotated[
        Hidden | None, Meta(description="A file of accounts for the crawl's session")
    ] = None
    encrypt_key: Annotated[
        Hidden | None,
        Meta(description="The key that encrypts the cookies of accounts: file:PATH or env:NAME"),
    ] = None
    spider_version: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        Meta(
            description="The version of the spider's code that workers report, instead of a hash"
            " of its files"
        ),
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
"""Every setting by name. No name occurs in both structs."""


def build(values: Mapping[str, Any]) -> Settings:
    """Check values and make settings from them. Raises ConfigError."""
    unknown = sorted(set(values) - set(SETTINGS))
    if unknown:
        raise BadField(unknown[0], f"no setting {unknown[0]!r:.80}{meant(unknown[0], SETTINGS)}")
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
