"""The first tasks of a spider: those of `start`, and the first pages of its catalogues."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from shoal.core.plaintext import shown
from shoal.core.task import Task, flaw_of
from shoal.errors import ConfigError
from shoal.spider.catalogue import catalogues_of, first_tasks
from shoal.spider.spider import Spider, is_handler


async def seeds(spider: Spider) -> AsyncIterator[Task]:
    """The tasks a spider starts with: the first page of each catalogue, then those of `start`."""
    for task in _catalogue_seeds(spider):
        yield task
    started: Any = spider.start()
    if inspect.isawaitable(started):
        started = await started
    if isinstance(started, AsyncIterable):
        async for seed in started:
            yield _as_task(seed)
    else:
        for seed in _as_iterable(started):
            yield _as_task(seed)


def starts_nowhere(spider: type[Spider]) -> bool:
    """Whether it has no first tasks of its own."""
    return not (spider.start_urls or spider.start is not Spider.start or catalogues_of(spider))


def unread_starts(spider: type[Spider]) -> str:
    """Why no method reads the pages that a spider starts with. Empty: there is one."""
    if spider.start is not Spider.start or not spider.start_urls:
        return ""
    if spider.parse is not Spider.parse or spider.rules:
        return ""
    return f"{spider.__name__} has no method 'parse' to read its start URLs"


def _catalogue_seeds(spider: Spider) -> Iterator[Task]:
    # They come first: a start URL for the same page would not be known as part of the catalogue.
    for task in first_tasks(catalogues_of(spider)):
        if not is_handler(type(spider), task.job_type):
            raise ConfigError(
                f"{type(spider).__name__}.catalogue: no method {task.job_type!r} to read its pages"
            )
        yield task


def _as_iterable(started: Any) -> Iterable[Any]:
    if isinstance(started, Iterable) and not isinstance(started, str | bytes):
        return started
    raise ConfigError(f"start() must give tasks or URLs, not {shown(started)}")


def _as_task(seed: Any) -> Task:
    if isinstance(seed, str):
        return Task(url=seed)
    if not isinstance(seed, Task):
        raise ConfigError(f"start() yielded {shown(seed)}: it must yield tasks or URLs")
    if flaw := flaw_of(seed):
        raise ConfigError(f"start() yielded a task that cannot be sent: {flaw}")
    return seed
