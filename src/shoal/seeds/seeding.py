"""Adds seeds to the frontier: those of a spider, and those that others left in the inbox."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from shoal.config import Rules
from shoal.core import task as wire
from shoal.core import urls
from shoal.core.networks import is_private_name
from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError, ShoalError
from shoal.frontier.admission import Admission, NotAdmitted
from shoal.frontier.patient import patient
from shoal.frontier.port import IntakeAndUpkeep, WorkIntake
from shoal.frontier.values import Added, Control, Entry
from shoal.spider.spider import Spider
from shoal.spider.starting import seeds

BATCH = 500

log = logging.getLogger("shoal")


def refuse_private_seeds(spider: Spider) -> None:
    """Check that no start URL of a spider is private, as every request to it would be refused.

    Raises ConfigError. A spider with its own `start` is not checked.
    """
    if type(spider).start is not Spider.start:
        return
    if private := next(filter(_is_private, spider.start_urls or ()), None):
        raise ConfigError(
            f"{private} is a private address: --allow-private, or allow_private = True in the"
            " spider, lets it be crawled"
        )


def _is_private(url: str) -> bool:
    try:
        return is_private_name(urls.parse(url).hostname)
    except BadUrl:  # An invalid URL is reported later, when it is added.
        return False


async def seed_from_spider(
    frontier: IntakeAndUpkeep, crawl: str, spider: Spider, rules: Rules
) -> Added:
    """Add the seeds of a spider, then seal the crawl, so that it can finish.

    Safe to do twice and from two processes, as seeds added again are duplicates. Raises ConfigError
    if the spider's `start` raises.
    """
    try:
        added = await add_all(frontier, crawl, seeds(spider), rules, _reject)
    except ShoalError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{spider.name}: start() raised {type(error).__name__}: {error}"
        ) from error
    await patient(frontier).control(crawl, Control.SEAL)
    return added


async def add_all(
    frontier: WorkIntake,
    crawl: str,
    tasks: AsyncIterator[Task],
    rules: Rules,
    reject: Callable[[BadUrl], None],
    on_batch: Callable[[], Awaitable[None]] | None = None,
) -> Added:
    """Add any number of tasks in batches.

    Tasks that are not admitted go to `reject`. `on_batch` is called after each full batch, when all
    tasks read so far are in the frontier.
    """
    admission = Admission(rules)
    batch: list[Entry] = []
    total = Added()
    async for task in tasks:
        try:
            batch.append(admission.admit(task))
        except BadUrl as error:
            reject(error)
        if len(batch) >= BATCH:
            total += await _add(frontier, crawl, batch)
            batch = []
            if on_batch is not None:
                await on_batch()
    return total + await _add(frontier, crawl, batch)


async def collect(frontier: WorkIntake, crawl: str, rules: Rules) -> Added:
    """Queue the seeds in the crawl's inbox until it is empty. Raises UnknownCrawl."""
    admission = Admission(rules)

    def read(text: bytes) -> Entry:
        return admission.admit(read_seed(text))

    frontier = patient(frontier)
    total, left = Added(), (await frontier.stats(crawl)).inbox
    while left:
        added = await frontier.collect(crawl, read)
        before, left = left, (await frontier.stats(crawl)).inbox
        total += added
        if left >= before and not added.any:
            break  # Another process is collecting too.
    return total


def read_seed(text: bytes) -> Task:
    """Parse a seed: a URL, bare or as a JSON string, or a task as JSON. Raises BadUrl."""
    text = text.strip()
    try:
        if text.startswith(b"{"):
            return wire.decode_seed(text)
        is_json = text.startswith(b'"')
        url = msgspec.json.decode(text, type=str) if is_json else text.decode()
        if "\n" in url:  # A browser would make one address of several lines.
            raise BadUrl("several lines: each URL is a message of its own")
        return Task(url=url)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadUrl(str(error)) from None


async def _add(frontier: WorkIntake, crawl: str, batch: list[Entry]) -> Added:
    if not batch:  # Adding would create the crawl.
        return Added()
    return await patient(frontier).add(crawl, batch)


def _reject(error: BadUrl) -> None:
    """Log a seed that the rules do not admit. Any other invalid seed of a spider is an error."""
    if not isinstance(error, NotAdmitted):
        raise error
    log.warning("seed skipped: %s", error)
