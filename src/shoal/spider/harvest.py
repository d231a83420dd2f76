"""Reading a page with a spider: run its handler, and get items to be stored and tasks to be
followed. For visits and for reparsing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import msgspec

from shoal.core import own_counts
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.task import Task
from shoal.errors import OwnFault
from shoal.spider.asking import Drop
from shoal.spider.failure import Failure
from shoal.spider.hooks import through_hooks
from shoal.spider.items import store_form
from shoal.spider.page import Page
from shoal.spider.spider import Harvest, Spider, harvest, harvest_failure


class Reading(msgspec.Struct):
    """What a handler gave for one page, with items as they are stored."""

    tasks: list[Task] = []
    links_cut: int = 0
    """Links that were left out, as there were too many."""
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    error: BaseException | None = None
    """What the handler raised. Then there is nothing else."""


async def read(
    spider: Spider, page: Page, scraped_at: float, *, canonical: bool = False
) -> Reading:
    """Run the task's handler on its page. Raises only what came through it from outside, OwnFault
    for one.

    With `canonical`, items have the address that the page gives as its own.
    """
    return await _read(harvest(spider, page), spider, page, scraped_at, canonical=canonical)


async def read_failure(spider: Spider, failure: Failure, scraped_at: float) -> Reading:
    """Tell the spider of a task that has failed. What it gives is read as from a page."""
    return await _read(harvest_failure(spider, failure), spider, failure._page, scraped_at)


async def _read(
    harvesting: Awaitable[Harvest],
    spider: Spider,
    page: Page,
    scraped_at: float,
    *,
    canonical: bool = False,
) -> Reading:
    try:
        found = await harvesting
        if hooks := spider._shoal_hooks.item:
            found.items = await through_hooks(found.items, page, hooks)
    except BaseException as error:  # Also sys.exit(): a page must not end its worker.
        if is_meant_for_us(error):
            raise
        if not isinstance(error, Drop):  # Its items are no items either.
            own_counts.forget()
        return Reading(error=error)
    reading = Reading(found.tasks, page.links_cut)
    url = (canonical and page.canonical) or page.url
    for item in found.items:
        row = store_form(item, url=url, fingerprint=page.fingerprint, scraped_at=scraped_at)
        if isinstance(row, StoredItem):
            reading.items.append(row)
        else:
            reading.rejected.append(row)
    return reading


def is_meant_for_us(error: BaseException) -> bool:
    """Whether it came through the user's code from outside: Ctrl-C, or the visit was cancelled, or
    our own machine could not read the page."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | OwnFault)
