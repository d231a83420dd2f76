"""Bringing URLs into the frontier: a spider's first ones, and what others left in the inbox."""

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
    """Say at once what every request would end with: a spider that starts on this machine, or in
    its network, must be allowed to. Raises ConfigError. What `start` yields is not looked at."""
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
    except BadUrl:  # What is no URL is told when it is its turn.
        return False


async def seed_from_spider(
    frontier: IntakeAndUpkeep, crawl: str, spider: Spider, rules: Rules
) -> Added:
    """Add what the spider starts with, then seal the crawl: from now on it can be finished.

    Safe to do twice and from two processes: what is there already is a duplicate.
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
    """Add any number of tasks, in batches. What is not admitted goes to `reject`; `on_batch` is
    called whenever all that was read is in."""
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
    """Queue what others left in the crawl's inbox until it is empty. Raises UnknownCrawl."""
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
            break  # Somebody else is at it.
    return total


def read_seed(text: bytes) -> Task:
    """A seed as others write it: a URL, or a task as JSON. Raises BadUrl."""
    text = text.strip()
    try:
        if text.startswith(b"{"):
            return wire.decode_seed(text)
        if b"\n" in text:  # A browser would make one address of several lines.
            raise BadUrl("several lines: each URL is a message of its own")
        return Task(url=text.decode())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadUrl(str(error)) from None


async def _add(frontier: WorkIntake, crawl: str, batch: list[Entry]) -> Added:
    if not batch:  # Not even the crawl is made then.
        return Added()
    return await patient(frontier).add(crawl, batch)


def _reject(error: BadUrl) -> None:
    """A spider may start with URLs that its rules do not want, not with garbage."""
    if not isinstance(error, NotAdmitted):
        raise error
    log.warning("seed skipped: %s", error)
