"""Calling the handler of a page, and sorting what it yields into tasks, items and files."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from shoal.core.plaintext import shown
from shoal.core.task import MAX_PRIORITY, Task, flaw_of
from shoal.errors import ShoalError
from shoal.spider.failure import Failure
from shoal.spider.files import ItemFiles
from shoal.spider.items import is_item_class
from shoal.spider.page import Page
from shoal.spider.selection import Selection
from shoal.spider.spider import ON_FAILURE, Spider, is_handler


class UnknownHandler(ShoalError):
    """A task names a handler that its spider does not have."""


class Harvest(msgspec.Struct):
    """The tasks and items that a handler yielded for a page."""

    tasks: list[Task] = []
    items: list[Any] = []
    files: list[ItemFiles] = []


async def harvest(spider: Spider, page: Page) -> Harvest:
    """Run the task's handler on its page. Whatever the handler raises is passed on."""
    name = page.task.job_type
    if not is_handler(type(spider), name):
        raise UnknownHandler(f"{type(spider).__name__} has no handler {shown(name)}")
    into = Harvest()
    await _sort(await _awaited(getattr(spider, name)(page)), into)
    if spider.rules:
        into.tasks += spider._shoal_rules.tasks(page)
    return _as_children(into, page)


async def harvest_failure(spider: Spider, failure: Failure) -> Harvest:
    """Tell the spider of a task that has failed: the method that the task names, or all that there
    are for any. Whatever it raises is passed on."""
    name = failure.task.on_failure
    hooks: Sequence[Callable[[Failure], Any]] = spider._shoal_hooks.on_failure
    if name and name != ON_FAILURE:
        if not is_handler(type(spider), name):
            raise UnknownHandler(f"{type(spider).__name__} has no method {shown(name)}")
        hooks = [getattr(spider, name)]
    into = Harvest()
    for hook in hooks:
        await _sort(await _awaited(hook(failure)), into)
    return _as_children(into, failure._page)


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def _sort(thing: Any, into: Harvest) -> None:
    """Put what a handler yielded where it belongs; look into lists, generators and the like."""
    if isinstance(thing, Task):
        into.tasks.append(thing)
    elif _is_item(type(thing)):
        into.items.append(thing)
    elif isinstance(thing, ItemFiles):
        into.files.append(thing)
    elif isinstance(thing, AsyncIterable):
        async for inner in thing:
            await _sort(inner, into)
    elif thing is not None:
        for inner in _inside(thing):
            # Nearly everything a page gives is a link, and a call for each would add up.
            if type(inner) is Task:
                into.tasks.append(inner)
            else:
                await _sort(inner, into)


_is_item: Callable[[type], bool] = cache(is_item_class)


def _inside(thing: Any) -> Iterable[Any]:
    if isinstance(thing, str):
        raise TypeError(f"a handler yielded the text {shown(thing)}: use page.follow(url)")
    if isinstance(thing, Selection):
        raise TypeError("a handler yielded a selection: use page.follow_all(selection)")
    if inspect.iscoroutine(thing):
        thing.close()
        raise TypeError("a handler yielded a coroutine: await it first")
    if isinstance(thing, Iterable) and not isinstance(thing, bytes | bytearray):
        return thing
    raise TypeError(f"a handler yielded {shown(thing)}: neither an item nor a task")


def _as_children(into: Harvest, page: Page) -> Harvest:
    """Check the tasks that were yielded, and make them children of their page."""
    deeper = page.task.depth + 1
    for index, task in enumerate(into.tasks):
        if not _is_plain(task, page) and (flaw := flaw_of(task)):
            raise TypeError(f"a handler yielded a task that cannot be sent: {flaw}")
        if task.parent is None or task.depth < deeper:
            into.tasks[index] = _as_child(task, page)
    return into


def _as_child(task: Task, page: Page) -> Task:
    """A task that a handler made itself is as deep as if it were made by `page.follow`, at least:
    no limit on depth would hold otherwise."""
    return msgspec.structs.replace(
        task,
        depth=max(task.depth, page.task.depth + 1),
        parent=task.parent or page.fingerprint.hex(),
    )


def _is_plain(task: Task, page: Page) -> bool:
    """Made by `page.follow` with nothing in it that could be wrong. Most are, and this is quick."""
    return (
        task.parent is not None
        and type(task.priority) is int
        and -MAX_PRIORITY <= task.priority <= MAX_PRIORITY
        and not task.meta
        and not task.headers
        and task.body is None
        and task.chain is None
        and task.max_retries is None
        and task.session == page.task.session
    )
