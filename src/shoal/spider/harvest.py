"""Calls the handler of a page, and sorts what it yields into tasks, items and files."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from shoal.core.near_names import meant
from shoal.core.plaintext import shown
from shoal.core.task import MAX_PRIORITY, Task, flaw_of
from shoal.errors import ShoalError
from shoal.spider.failure import Failure
from shoal.spider.files import ItemFiles
from shoal.spider.items import is_item_class
from shoal.spider.page import Page
from shoal.spider.scrapy_words import is_request_of_scrapy
from shoal.spider.selection import Selection
from shoal.spider.spider import ON_FAILURE, Spider, handlers_of, is_handler


class UnknownHandler(ShoalError):
    """A task names a handler that its spider does not have."""


MAX_YIELDED = 1_000_000
"""The most items, tasks and files of one page. A handler may count up to a number on the page, and
pages may be hostile: it would fill the memory until its worker is killed."""
_TOO_MUCH = f"a handler yielded more than {MAX_YIELDED:,} items, tasks and files for one page"


class _NotYielded(Exception):
    """A handler yielded too many things, or something that is neither an item nor a task. Users see
    a TypeError in the line with the yield."""


class Harvest(msgspec.Struct):
    """The tasks and items that a handler yielded for a page."""

    tasks: list[Task] = []
    items: list[Any] = []
    files: list[ItemFiles] = []
    links_to_files: int = 0
    """How many links `files` contains. One page may have many items, each with all of the files."""


async def harvest(spider: Spider, page: Page) -> Harvest:
    """Run the task's handler on its page. Whatever the handler raises is passed on."""
    name = page.task.job_type
    if not is_handler(type(spider), name):
        near = meant(name, handlers_of(type(spider)))
        raise UnknownHandler(f"{type(spider).__name__} has no handler {shown(name)}{near}")
    into = Harvest()
    await _sort_given(await _awaited(getattr(spider, name)(page)), into)
    if spider.rules:
        into.tasks += spider._shoal_rules.tasks(page)
    return _as_children(into, page)


async def harvest_failure(spider: Spider, failure: Failure) -> Harvest:
    """Tell the spider about a failed task: call the method that the task names, else all
    `on_failure` hooks. Whatever they raise is passed on."""
    name = failure.task.on_failure
    hooks: Sequence[Callable[[Failure], Any]] = spider._shoal_hooks.on_failure
    if name and name != ON_FAILURE:
        if not is_handler(type(spider), name):
            raise UnknownHandler(f"{type(spider).__name__} has no method {shown(name)}")
        hooks = [getattr(spider, name)]
    into = Harvest()
    for hook in hooks:
        await _sort_given(await _awaited(hook(failure)), into)
    return _as_children(into, failure._page)


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def _sort_given(thing: Any, into: Harvest) -> None:
    try:
        await _sort(thing, into)
    except _NotYielded as error:
        raise TypeError(str(error)) from None


async def _sort(thing: Any, into: Harvest) -> None:
    """Sort what a handler yielded; look into lists, generators and the like."""
    if isinstance(thing, Task):
        into.tasks.append(thing)
    elif _is_item(type(thing)):
        into.items.append(thing)
    elif isinstance(thing, ItemFiles):
        into.files.append(thing)
        into.links_to_files += len(thing.tasks) + len(thing.addresses)
        _check_size(into)
    elif isinstance(thing, AsyncIterable):
        async for inner in thing:
            try:
                await _sort(inner, into)
                _check_size(into)
            except _NotYielded as error:
                await _raise_there(thing, error)
    elif thing is not None:
        await _sort_all(thing, into)


async def _sort_all(things: Any, into: Harvest) -> None:
    try:
        inside = iter(_inside(things))
        for inner in islice(inside, MAX_YIELDED):
            # Nearly everything that a page gives is a link. A call for each would add up.
            if type(inner) is Task:
                into.tasks.append(inner)
            else:
                await _sort(inner, into)
        for _ in inside:
            raise _NotYielded(_TOO_MUCH)
        _check_size(into)
    except _NotYielded as error:
        await _raise_there(things, error)


def _check_size(into: Harvest) -> None:
    if len(into.items) + len(into.tasks) + into.links_to_files > MAX_YIELDED:
        raise _NotYielded(_TOO_MUCH)


async def _raise_there(generator: Any, error: _NotYielded) -> None:
    """Raise the error where the user's code yields, so that its traceback begins there. It is also
    raised here, in case that code ignores it or is not a generator."""
    there = TypeError(str(error))
    with suppress(StopIteration, StopAsyncIteration):
        if inspect.isgenerator(generator):
            generator.throw(there)
        elif inspect.isasyncgen(generator):
            await generator.athrow(there)
    raise error


_is_item: Callable[[type], bool] = cache(is_item_class)


def _inside(thing: Any) -> Iterable[Any]:
    if isinstance(thing, str):
        raise _NotYielded(f"a handler yielded the text {shown(thing)}: use page.follow(url)")
    if isinstance(thing, Selection):
        raise _NotYielded("a handler yielded a selection: use page.follow_all(selection)")
    if inspect.iscoroutine(thing):
        thing.close()
        raise _NotYielded("a handler yielded a coroutine: await it first")
    if isinstance(thing, Mapping):  # Otherwise its keys would be yielded.
        raise _NotYielded(f"a handler yielded a {type(thing).__name__}: use dict(it)")
    if isinstance(thing, Iterable) and not isinstance(thing, bytes | bytearray):
        return thing
    rather = ": use page.follow(url)" if is_request_of_scrapy(thing) else ""
    raise _NotYielded(f"a handler yielded {shown(thing)}: neither an item nor a task{rather}")


def _as_children(into: Harvest, page: Page) -> Harvest:
    """Check the yielded tasks, and make them children of their page."""
    deeper = page.task.depth + 1
    for index, task in enumerate(into.tasks):
        if not _is_plain(task, page) and (flaw := flaw_of(task)):
            raise TypeError(f"a handler yielded a task that cannot be sent: {flaw}")
        if task.parent is None or task.depth < deeper:
            into.tasks[index] = _as_child(task, page)
    return into


def _as_child(task: Task, page: Page) -> Task:
    """Make a task that a handler created itself at least as deep as one of `page.follow`:
    otherwise limits on depth would not hold."""
    return msgspec.structs.replace(
        task,
        depth=max(task.depth, page.task.depth + 1),
        parent=task.parent or page.fingerprint.hex(),
    )


def _is_plain(task: Task, page: Page) -> bool:
    """Whether `page.follow` made the task with no options to check. Most are, so this is quick."""
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
