"""The base class of spiders: where to start, how to read pages, what to follow."""

from __future__ import annotations

import inspect
import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from functools import cache, cached_property
from types import FunctionType, MethodType
from typing import Any, ClassVar

import msgspec

from shoal.config import SETTINGS, of_spider
from shoal.core.own_counts import count
from shoal.core.task import (
    DEFAULT_HANDLER,
    MAX_PRIORITY,
    Task,
    bad_body,
    decode,
    encode,
)
from shoal.errors import ConfigError, ShoalError
from shoal.spider.catalogue import Catalogue, catalogues_of, first_tasks
from shoal.spider.failure import Failure
from shoal.spider.files import ItemFiles
from shoal.spider.follow_rules import Follow, FollowRules, read_rules
from shoal.spider.hooks import TAKES, Hooks, hooks_of, is_hook
from shoal.spider.items import is_item_class
from shoal.spider.page import Page, accepted
from shoal.spider.selection import Selection, parse_query
from shoal.spider.session import Session

Seeds = Iterable[Task | str] | AsyncIterable[Task | str] | Awaitable[Iterable[Task | str]]
"""What `start` may be: a generator, plain or async, or anything that gives a list."""


LOGIN = "login"
ON_FAILURE = "on_failure"


class UnknownHandler(ShoalError):
    """A task names a handler that its spider does not have."""


class Spider:
    """Base of spiders. Write `parse`, and a method for each further kind of page.

    A handler takes a page and yields items, tasks (`page.follow(...)`) or lists of them. It may be
    a generator, plain or async, or return a list. Any setting can be a class attribute: those of
    `shoal.config.Rules` and of `shoal.config.Settings`.
    """

    name: ClassVar[str] = "spider"
    """The crawl's name. By default the class's, in lower case."""
    start_urls: Sequence[str] = ()
    catalogue: Catalogue | Sequence[Catalogue]
    """Listings whose pages are numbered: all their pages are read, by the handlers they name."""
    rules: Sequence[Follow] = ()
    """Links that are followed from all pages that `parse` reads, beside what it yields itself."""
    expect: str = ""
    """CSS of something that every HTML page of the site has: `h1.title`. A page without it is taken
    for a block: no handler gets it, and it is tried again."""
    login_url: str = ""
    """Where people log in. A page that redirects there shows that its session has ended."""
    accept: Iterable[int] = ()
    """Statuses, beside 2xx, whose answers its handlers read: `{404}`."""
    logged_in: Any = ""
    """CSS of something that only pages for who is logged in have: the proof of a login. Or a method
    `logged_in(self, page)` that says whether a page shows it."""
    seeds_itself: ClassVar[bool] = False
    """Whether its workers queue its first tasks. Only spiders of Scrapy do."""

    rate: str
    """Requests per host, for the whole fleet: `2/s`, `30/m`, `auto`, `none`."""
    concurrency_per_host: int
    allowed_hosts: Sequence[str]
    """Hosts, and those below them, that may be crawled."""
    max_pages: int | None
    max_depth: int | None
    max_pages_per_host: int | None
    max_pages_per_shape: int | None
    max_retries: int
    max_links_per_page: int
    robots: bool
    """Whether robots.txt is obeyed. It is, by default."""
    user_agent: str
    session: str | None
    """The accounts that pages are fetched with: a group, `shop`, or one account of it. An account
    is logged in by `async def login(self, session)`, a method that gets a `Session`; unless the
    group's table in shoal.toml says how."""
    accounts: str | None
    """A file with the accounts of that group."""

    plugins: Sequence[Any] = ()
    """What several spiders share: classes, or objects, with hooks of their own. See hooks.py."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()
        catalogues_of(cls)  # A mistake in it is said at once.
        _check_css(cls, "expect")
        _check_css(cls, "logged_in")
        _check_accept(cls)

    @cached_property
    def _shoal_hooks(self) -> Hooks:
        """What is called on the way of its pages, unless whoever made it has added to that."""
        return hooks_of(self, self.plugins)

    @cached_property
    def _shoal_rules(self) -> FollowRules:
        """Its rules, once they were looked at. Raises ConfigError."""
        cls = type(self)
        return read_rules(cls.__name__, self.rules, lambda name: _is_handler(cls, name))

    @cached_property
    def logger(self) -> logging.Logger:
        """A logger with the spider's name."""
        return logging.getLogger(self.name)

    def count(self, name: str, times: int = 1) -> None:
        """Count something, for the whole fleet: `self.count("sold_out")` in a handler or a hook.
        It counts with the end of the task; not if the handler raises, or is called again for it.
        At most 64 names: letters, digits, and - _ . only."""
        count(name, times)

    def start(self) -> Seeds:
        """The first tasks, or their URLs. By default, `start_urls`."""
        if isinstance(self.start_urls, str):
            raise ConfigError(f"{type(self).__name__}.start_urls must be a list of URLs")
        return self.start_urls

    def blocked(self, page: Page) -> str | bool | None:
        """Whether the site has sent something else than the page that was asked for: True, or the
        kind of block in a word. Such a page reaches no handler and is tried again, by another exit
        where there are any. False: it is no block, whatever it looks like. None: no opinion."""
        return None

    def parse(self, page: Page) -> Any:
        """Reads the pages that no other handler was named for. By default, for the rules alone."""
        if self.rules:
            return None
        raise NotImplementedError(f"{type(self).__name__} has no method 'parse'")


def _check_css(spider: type[Spider], name: str) -> None:
    query = getattr(spider, name)
    try:
        if query != "" and not callable(query):
            parse_query(query)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{spider.__name__}.{name}: {error}") from None


def _check_accept(spider: type[Spider]) -> None:
    try:
        accepted(spider.accept)
    except ValueError as error:
        raise ConfigError(f"{spider.__name__}.accept: {error}") from None


def login_of(spider: Spider) -> Callable[[Session], Awaitable[Page | None]] | None:
    """The method by which a spider logs accounts in. None: it has none."""
    return getattr(spider, LOGIN) if _has_login(type(spider)) else None


def _has_login(spider: type) -> bool:
    """A method `login` is for sessions if that is what it takes. One that takes a page is a handler
    like any other."""
    method = getattr(spider, LOGIN, None)
    if not isinstance(method, FunctionType | MethodType):
        return False
    return "session" in inspect.signature(method).parameters


class Harvest(msgspec.Struct):
    """The tasks and items that a handler yielded for a page."""

    tasks: list[Task] = []
    items: list[Any] = []
    files: list[ItemFiles] = []


_OTHERWISE = ("name", "plugins")
"""Attributes that are no settings, though settings have these names."""


def settings_of(spider: type[Spider]) -> dict[str, Any]:
    """The settings that a spider sets as class attributes, and over them those of its own table in
    shoal.toml. Raises ConfigError for a name that a crawl cannot have."""
    if not isinstance(spider.name, str):
        raise ConfigError(f"{spider.__name__}.name must be text, not {_shown(spider.name)}")
    found = {}
    for name in SETTINGS:
        # A method of that name is a handler, not a setting: `results` is a likely one.
        if name not in _OTHERWISE and hasattr(spider, name) and not callable(getattr(spider, name)):
            found[name] = getattr(spider, name)
    return found | of_spider(table_of(spider))


def table_of(spider: type[Spider]) -> str:
    """The name of its table [spider.NAME] in shoal.toml: that of the spider, without what its
    arguments add to it."""
    return spider.name.partition("{")[0].rstrip("-_.") or spider.__name__.lower()


def check_rules(spider: Spider) -> None:
    """Raises ConfigError for rules that cannot be followed."""
    _ = spider._shoal_rules


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


def _catalogue_seeds(spider: Spider) -> Iterator[Task]:
    # They come first: a start URL that is the same page does not know that it is one of them.
    for task in first_tasks(catalogues_of(spider)):
        if not _is_handler(type(spider), task.job_type):
            raise ConfigError(
                f"{type(spider).__name__}.catalogue: no method {task.job_type!r} to read its pages"
            )
        yield task


def _as_iterable(started: Any) -> Iterable[Any]:
    if isinstance(started, Iterable) and not isinstance(started, str | bytes):
        return started
    raise ConfigError(f"start() must give tasks or URLs, not {_shown(started)}")


def _as_task(seed: Any) -> Task:
    if isinstance(seed, str):
        return Task(url=seed)
    if not isinstance(seed, Task):
        raise ConfigError(f"start() yielded {_shown(seed)}: it must yield tasks or URLs")
    if flaw := _flaw(seed):
        raise ConfigError(f"start() yielded a task that cannot be sent: {flaw}")
    return seed


async def harvest(spider: Spider, page: Page) -> Harvest:
    """Run the task's handler on its page. Whatever the handler raises is passed on."""
    name = page.task.job_type
    if not _is_handler(type(spider), name):
        raise UnknownHandler(f"{type(spider).__name__} has no handler {_shown(name)}")
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
        if not _is_handler(type(spider), name):
            raise UnknownHandler(f"{type(spider).__name__} has no method {_shown(name)}")
        hooks = [getattr(spider, name)]
    into = Harvest()
    for hook in hooks:
        await _sort(await _awaited(hook(failure)), into)
    return _as_children(into, failure._page)


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _as_children(into: Harvest, page: Page) -> Harvest:
    """Check the tasks that were yielded, and make them children of their page."""
    deeper = page.task.depth + 1
    for index, task in enumerate(into.tasks):
        if not _is_plain(task, page) and (flaw := _flaw(task)):
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


def _is_handler(spider: type[Spider], name: str) -> bool:
    """Whether a task may name this. Tasks may be hostile."""
    return name in _handlers_of(spider)


def handlers_of(spider: type) -> frozenset[str]:
    """What a task of the spider may name: the methods that the user wrote, and `parse`."""
    return _handlers_of(spider)


def _public_methods(spider: type) -> frozenset[str]:
    """The methods that the user wrote, and `parse`."""
    found: dict[str, object] = {}
    for cls in reversed(spider.__mro__):
        found.update(vars(cls))
    if _has_login(spider):
        del found[LOGIN]
    for hook in [name for name in TAKES if is_hook(spider, name)]:
        del found[hook]
    return frozenset(
        name
        for name, method in found.items()
        if isinstance(method, FunctionType | staticmethod | classmethod)
        and not name.startswith("_")
        and (name not in vars(Spider) or name == DEFAULT_HANDLER)
    )


_handlers_of: Callable[[type], frozenset[str]] = cache(_public_methods)


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
        raise TypeError(f"a handler yielded the text {_shown(thing)}: use page.follow(url)")
    if isinstance(thing, Selection):
        raise TypeError("a handler yielded a selection: use page.follow_all(selection)")
    if inspect.iscoroutine(thing):
        thing.close()
        raise TypeError("a handler yielded a coroutine: await it first")
    if isinstance(thing, Iterable) and not isinstance(thing, bytes | bytearray):
        return thing
    raise TypeError(f"a handler yielded {_shown(thing)}: neither an item nor a task")


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


def _flaw(task: Task) -> str | None:
    """Why a task could not travel to another worker; None if it can."""
    if flaw := bad_body(task):
        return flaw
    try:
        decode(encode(task))
    except Exception as error:  # whatever is in `meta` may raise anything
        return str(error)
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
