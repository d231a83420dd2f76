"""The rules of a crawl: each with its type, default, bounds and description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from shoal.core.fields import at_most, explained
from shoal.core.media_types import check_patterns
from shoal.core.policy import MAX_BLOCKS, MAX_LOSSES, MAX_RETRIES, parse_duration, parse_rate
from shoal.core.urls import TRACKING_PARAMETERS, check_hosts

RateText = Annotated[str, Meta(extra={"check": parse_rate})]
Duration = Annotated[str, Meta(extra={"check": parse_duration, "stands_for": "TIME"})]

Fingerprints = Literal["shoal", "scrapy", "project"]
"""Whose fingerprints are used: Shoal's, Scrapy's, or those of a Scrapy project's fingerprinter."""
Seen = Literal["exact", "bloom", "auto"]
History = Literal["changed", "always", "off"]
Cookies = Literal["off", "visit"]


class Rules(msgspec.Struct, kw_only=True, frozen=True):
    """What a crawl may do. Every worker of the fleet has the same rules."""

    rate: Annotated[
        RateText,
        Meta(description="Maximum request rate per host, across the fleet: 2/s, 30/m, auto, none"),
    ] = "1/s"
    concurrency_per_host: Annotated[
        int, Meta(ge=1, description="Maximum concurrent requests per host, across the fleet")
    ] = 16
    max_pages: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Stop after this many pages", extra={"unset": "no limit"}),
    ] = None
    max_depth: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Maximum link depth to follow; seeds are at depth 0",
            extra={"unset": "no limit"},
        ),
    ] = None
    max_pages_per_host: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of pages per host to reach by following links"),
    ] = None
    max_pages_per_shape: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of pages per host whose URLs differ only in numbers, IDs"
            " and values, like /calendar/N/N?day"
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
        int,
        Meta(
            ge=1,
            description="Maximum number of links to follow from one page; the rest are only"
            " counted",
        ),
    ] = 20_000
    stop_after_errors: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Pause the crawl each time this many handlers have raised an exception",
            extra={"unset": "never"},
        ),
    ] = None
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Hosts that may be crawled, including their subdomains; if empty, any host",
            extra={"check": check_hosts},
        ),
    ] = ()
    robots: Annotated[bool, Meta(description="Obey robots.txt")] = True
    drop_params: Annotated[
        tuple[str, ...],
        Meta(description="Query parameters to ignore when comparing URLs"),
    ] = TRACKING_PARAMETERS
    fingerprints: Annotated[
        Fingerprints, Meta(description="How to decide whether two requests are the same")
    ] = "shoal"
    cookies: Annotated[
        Cookies,
        Meta(
            description="When to keep cookies: never, or during a visit (redirects and chains of"
            " tasks)"
        ),
    ] = "off"
    lease_s: Annotated[
        float,
        Meta(
            gt=0, description="Seconds of silence after which a worker's tasks are given to another"
        ),
    ] = 30.0
    max_losses: Annotated[
        int,
        Meta(
            ge=1,
            description="Workers that may die while running a task before it is declared dead,"
            f" at most {MAX_LOSSES}",
            extra={"check": at_most(MAX_LOSSES)},
        ),
    ] = 5

    pools: Annotated[
        tuple[str, ...],
        Meta(
            description="Pools of exits that tasks may name: the [proxies.NAME] tables",
            extra={"unset": "all"},
        ),
    ] = ()
    proxy_pool: Annotated[
        str | None, Meta(description="The pool of exits for tasks that do not name one")
    ] = None
    sessions: Annotated[
        tuple[str, ...],
        Meta(
            description="Groups of accounts that tasks may name: the [sessions.NAME] tables",
            extra={"unset": "all"},
        ),
    ] = ()
    session: Annotated[
        str | None,
        Meta(
            description="The accounts for tasks that do not name any: a group, or one of its"
            " accounts"
        ),
    ] = None
    max_blocks: Annotated[
        int,
        Meta(
            ge=0,
            description="Times a site may block a task that uses exits before it is declared"
            f" dead, at most {MAX_BLOCKS}",
            extra={"check": at_most(MAX_BLOCKS)},
        ),
    ] = 5

    seen: Annotated[
        Seen,
        Meta(description="How to remember known URLs; auto is exact up to 10 million, then bloom"),
    ] = "exact"
    seen_error: Annotated[
        float,
        Meta(
            gt=0,
            lt=0.5,
            description="Fraction of new URLs that a Bloom filter may mistake for known ones",
        ),
    ] = 0.001
    seen_for: Annotated[
        Duration | None,
        Meta(description="Forget known URLs after this long (12h, 7d)", extra={"unset": "never"}),
    ] = None
    history: Annotated[
        History, Meta(description="Which readings of an item to keep in its history")
    ] = "changed"
    refresh_after: Annotated[
        Duration | None,
        Meta(description="Do not update items that were read more recently than this (1h, 7d)"),
    ] = None
    canonical: Annotated[
        bool, Meta(description="Treat a page's rel=canonical as another URL of the same page")
    ] = False
    simhash: Annotated[
        bool, Meta(description="Store a simhash of each page, to find similar pages")
    ] = False
    file_types: Annotated[
        tuple[str, ...],
        Meta(
            description="Media types of files to keep: image/*, application/pdf; if empty, all"
            " types",
            extra={"check": check_patterns},
        ),
    ] = ()
    previous: Annotated[
        str | None,
        Meta(
            description="An earlier crawl; pages that have not changed since are not fetched again"
        ),
    ] = None

    args: dict[str, Any] = {}
    """The spider's arguments: see spider/arguments.py. They are not a setting, but given with `-a`
    when the crawl begins."""


_decode_rules = msgspec.json.Decoder(Rules).decode


def read_rules(stored: str) -> Rules:
    """Decode the rules stored with a crawl. Raises ConfigError if a newer Shoal wrote rules that
    this version cannot follow."""
    try:
        return _decode_rules(stored)
    except msgspec.ValidationError as error:
        raise explained(error, msgspec.json.decode(stored), Rules) from None
