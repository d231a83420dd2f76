"""Reads a page with a spider: runs its handler and returns items to store and tasks to follow.
Used by visits and by reparsing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

import msgspec

from shoal.core import own_counts
from shoal.core.files import StoredFile, with_refs
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.task import Task
from shoal.errors import OwnFault
from shoal.spider.asking import Drop
from shoal.spider.failure import Failure
from shoal.spider.files import ItemFiles, WantedFiles
from shoal.spider.harvest import Harvest, harvest, harvest_failure
from shoal.spider.hooks import ItemHook, through_hooks
from shoal.spider.items import store_form
from shoal.spider.page import Page
from shoal.spider.spider import Spider


class Reading(msgspec.Struct):
    """The results of a handler for one page, with items as they are stored."""

    tasks: list[Task] = []
    links_cut: int = 0
    """How many links were left out because there were too many."""
    items: list[StoredItem] = []
    rejected: list[RejectedItem] = []
    files: list[Task] = []
    """The tasks for the files of these items."""
    no_files: list[StoredFile] = []
    """Files of these items that are not fetched."""
    error: BaseException | None = None
    """What the handler raised. If it raised, there are no results."""


async def read(
    spider: Spider, page: Page, scraped_at: float, *, canonical: bool = False
) -> Reading:
    """Run the task's handler on its page. Raises only errors from outside, such as OwnFault.

    With `canonical`, items get the address that the page gives as its own.
    """
    return await _read(harvest(spider, page), spider, page, scraped_at, canonical=canonical)


async def read_failure(spider: Spider, failure: Failure, scraped_at: float) -> Reading:
    """Tell the spider about a failed task. What it yields is handled as for a page."""
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
        files: list[Sequence[ItemFiles]] = []
        hooks = spider._shoal_hooks.item
        if found.files:
            found.items, files = await _with_files(found, page, hooks)
        elif hooks:
            found.items = await through_hooks(found.items, page, hooks)
    except BaseException as error:  # Also sys.exit(): a page must not end its worker.
        if is_meant_for_us(error):
            raise
        if not isinstance(error, Drop):  # If a handler raised, its counts do not count.
            own_counts.forget()
        return Reading(error=error)
    reading = Reading(found.tasks, page.links_cut)
    url = (canonical and page.canonical) or page.url
    rows = [
        store_form(item, url=url, fingerprint=page.fingerprint, scraped_at=scraped_at)
        for item in found.items
    ]
    if files:
        _refer(rows, files, reading, WantedFiles(page.max_links, scraped_at))
    for row in rows:
        if isinstance(row, StoredItem):
            reading.items.append(row)
        else:
            reading.rejected.append(row)
    return reading


async def _with_files(
    found: Harvest, page: Page, hooks: Sequence[ItemHook]
) -> tuple[list[Any], list[Sequence[ItemFiles]]]:
    """The items after the hooks, and the files of each. Items that hooks return keep the files."""
    of_items: dict[int, list[ItemFiles]] = {}
    for each in found.files:
        of_items.setdefault(id(each.item), []).append(each)
    yielded = {id(item) for item in found.items}
    others = [given[0].item for at, given in of_items.items() if at not in yielded]
    items: list[Any] = []
    files: list[Sequence[ItemFiles]] = []
    for item in [*found.items, *others]:
        left = await through_hooks([item], page, hooks)
        items += left
        files += [of_items.get(id(item), ())] * len(left)
    return items, files


def _refer(
    rows: Iterable[StoredItem | RejectedItem],
    files: Iterable[Sequence[ItemFiles]],
    reading: Reading,
    wanted: WantedFiles,
) -> None:
    """Give stored items references to their files, and have the files fetched."""
    for row, given in zip(rows, files, strict=True):
        if isinstance(row, StoredItem) and (refs := wanted.refs(given)):
            row.data = with_refs(row.data, refs)
    reading.files, reading.no_files = wanted.tasks, wanted.refused


def is_meant_for_us(error: BaseException) -> bool:
    """Whether an error comes from outside the user's code: Ctrl-C, a cancelled visit, or a machine
    that could not read the page."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | OwnFault)
