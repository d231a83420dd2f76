"""The base class of spiders, and which of their methods are handlers, hooks or logins."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from functools import cache, cached_property
from types import FunctionType, MethodType
from typing import Any, ClassVar

from shoal.core.own_counts import count
from shoal.core.task import DEFAULT_HANDLER, Task
from shoal.errors import ConfigError
from shoal.spider.catalogue import Catalogue, catalogues_of
from shoal.spider.follow_rules import Follow, FollowRules, read_rules
from shoal.spider.following import accepted
from shoal.spider.hooks import TAKES, Hooks, hooks_of, is_hook
from shoal.spider.page import Page
from shoal.spider.selection import parse_query
from shoal.spider.session import Session

Seeds = Iterable[Task | str] | AsyncIterable[Task | str] | Awaitable[Iterable[Task | str]]
"""What `start` may be: a generator, plain or async, or anything that gives a list."""

LOGIN = "login"
ON_FAILURE = "on_failure"


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
        return read_rules(cls.__name__, self.rules, lambda name: is_handler(cls, name))

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


def check_rules(spider: Spider) -> None:
    """Raises ConfigError for rules that cannot be followed."""
    _ = spider._shoal_rules


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


def is_handler(spider: type[Spider], name: str) -> bool:
    """Whether a task may name this. Tasks may be hostile."""
    return name in handlers_of(spider)


def _public_methods(spider: type) -> frozenset[str]:
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


handlers_of: Callable[[type], frozenset[str]] = cache(_public_methods)
"""What a task of the spider may name: the methods that the user wrote, and `parse`."""
