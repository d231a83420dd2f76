"""Finds the page to try, on the site, in the cache or in the archive."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from shoal.archive import archive_at
from shoal.archive.port import RawPage
from shoal.config import Rules, Settings
from shoal.core.near_names import meant
from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError, ShoalError
from shoal.frontier.admission import Admission
from shoal.insight.archived import find_archived
from shoal.insight.figures import duration
from shoal.results import results_at
from shoal.spider.spider import Spider, handlers_of
from shoal.spider.starting import seeds
from shoal.workbench.kept_pages import ArchivedPage, CachingFetcher
from shoal.workbench.one_page import Tried, try_page
from shoal.worker.visits.spider_visits import fetchers_for


async def task_for(
    spider: Spider, url: str | None, handler: str | None, meta: dict[str, Any]
) -> Task:
    """The task for a page. Without an address, it is the first task of the spider. Raises
    ConfigError."""
    if handler is not None and handler not in handlers_of(type(spider)):
        raise ConfigError(_no_handler(type(spider), handler))
    task = Task(url=url) if url is not None else await _first_of(spider)
    return replace(task, job_type=handler or task.job_type, meta=meta or task.meta)


async def _first_of(spider: Spider) -> Task:
    async for task in seeds(spider):
        return task
    raise ConfigError(f"{type(spider).__name__} has no first page: name a URL")


def _no_handler(spider: type[Spider], handler: str) -> str:
    there_are = sorted(handlers_of(spider))
    hint = meant(handler, there_are) or f"; it has {', '.join(there_are)}"
    return f"{spider.__name__} has no handler {handler!r}{hint}"


def meta_from(pairs: list[str]) -> dict[str, Any]:
    """The notes in `key=value`. A value that is not JSON is text. Raises ConfigError."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"--meta: write key=value, not {pair!r}")
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name] = value
    return found


async def try_from_site(spider: Spider, settings: Settings, task: Task) -> tuple[Tried, str]:
    """Try the page of the site. Also returns a word on where it came from."""
    return await try_page(spider, settings, task), "the site"


async def try_from_cache(
    spider: Spider, settings: Settings, task: Task, folder: Path
) -> tuple[Tried, str]:
    """Try the page of the cache. If it is not there, it is fetched and kept."""
    opened: list[CachingFetcher] = []

    def open_fetcher() -> CachingFetcher:
        opened.append(CachingFetcher(folder, fetchers_for(settings)))
        return opened[0]

    tried = await try_page(spider, settings, task, open_fetcher)
    kept_s = opened[0].kept_s
    if kept_s is None:
        return tried, f"the site, kept in {folder}"
    return tried, f"the cache in {folder}, kept {duration(kept_s)} ago"


async def try_from_archive(
    spider: Spider, settings: Settings, url: str, handler: str | None
) -> tuple[Tried, str]:
    """Try the newest page that the crawl has archived, with the handler that read it then."""
    raw = await archived_page(settings, settings.name or spider.name, url)
    task = replace(raw.task, job_type=handler or raw.task.job_type, proxy_pool=None, session=None)
    task = replace(task, redirects=[], not_before=None)
    rules = replace(settings.rules, robots=False, proxy_pool=None, session=None)
    alone = replace(settings, rules=rules, proxy_pools={}, session_groups={})
    tried = await try_page(spider, alone, task, partial(ArchivedPage, raw))
    at = datetime.fromtimestamp(raw.fetched_at, UTC).isoformat(" ", "seconds")
    return tried, f"the archive, as it was at {at.removesuffix('+00:00')} UTC"


async def archived_page(settings: Settings, crawl: str, url: str) -> RawPage:
    """The newest page of a crawl at this address in its archive. Raises ShoalError."""
    try:
        fingerprint = Admission(Rules(drop_params=settings.rules.drop_params)).fingerprint(url)
    except BadUrl as error:
        raise ConfigError(str(error)) from None
    async with results_at(settings.results) as results:
        note = await results.note_of(crawl)
        address = settings.archive or (note and note.archive)
        if not address:
            raise ConfigError(f"the last run of '{crawl}' had no archive: name one with --archive")
        found = await find_archived(results, crawl, fingerprint)
    if found is None:
        raise ShoalError(f"the archive of '{crawl}' has no page {url}")
    async with archive_at(address, settings.archive_format) as archive:
        return await archive.read(found.archived)
