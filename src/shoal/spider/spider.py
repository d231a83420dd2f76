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
"""What `start` may return: a generator, plain or async, a list, or an awaitable list."""

LOGIN = "login"
ON_FAILURE = "on_failure"


class Spider:
    """The base class of spiders. Write `parse`, and a method for each further kind of page.

    A handler takes a page and yields items, tasks (`page.follow(...)`) or lists of them. It may be
    a generator, plain or async, or return a list. Any setting can be a class attribute: those of
    `shoal.config.Rules` and of `shoal.config.Settings`.
    """

    name: ClassVar[str] = "spider"
    """The crawl's name. By default, the name of the class in lower case."""
    start_urls: Sequence[str] = ()
    catalogue: Catalogue | Sequence[Catalogue]
    """Listings with numbered pages. All their pages are read, by the handlers they name."""
    rules: Sequence[Follow] = ()
    """Links to follow on all pages that `parse` reads, besides what it yields itself."""
    expect: str = ""
    """CSS of something that every HTML page of the site has: `h1.title`. A page without it counts
    as a block: no handler gets it, and it is tried again."""
    login_url: str = ""
    """The address of the login page. A redirect to it means that the session has ended."""
    accept: Iterable[int] = ()
    """Statuses besides 2xx whose responses the handlers read: `{404}`."""
    logged_in: Any = ""
    """CSS of something that a page has only if you are logged in. Or a method
    `logged_in(self, page)` that says whether a page shows that you are."""
    seeds_itself: ClassVar[bool] = False
    """Whether its workers queue its first tasks. Only spiders of Scrapy do."""

    rate: str
    """Requests per host, for the whole fleet: `2/s`, `30/m`, `auto`, `none`."""
    concurrency_per_host: int
    allowed_hosts: Sequence[str]
    """Hosts that may be crawled, including their subdomains."""
    max_pages: int | None
    max_depth: int | None
    max_pages_per_host: int | None
    max_pages_per_shape: int | None
    max_retries: int
    max_links_per_page: int
    robots: bool
    """Whether robots.txt is obeyed. By default, it is."""
    user_agent: str
    session: str | None
    """The accounts to fetch pages with: a group, `shop`, or one account of it, `shop#alice`. The
    method `async def login(self, session)` logs an account in with a `Session`, unless the group's
    table in shoal.toml describes the login."""
    accounts: str | None
    """A file with the accounts of that group."""

    plugins: Sequence[Any] = ()
    """Classes or objects with hooks that several spiders share. See hooks.py."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()
        catalogues_of(cls)  # To report mistakes at once.
        _check_css(cls, "expect")
        _check_css(cls, "logged_in")
        _check_accept(cls)

    @cached_property
    def _shoal_hooks(self) -> Hooks:
        """The hooks of the spider and its plugins. Code that creates a spider may add more."""
        return hooks_of(self, self.plugins)

    @cached_property
    def _shoal_rules(self) -> FollowRules:
        """Its rules, checked. Raises ConfigError."""
        cls = type(self)
        return read_rules(cls.__name__, self.rules, lambda name: is_handler(cls, name))

    @cached_property
    def logger(self) -> logging.Logger:
        """A logger with the spider's name."""
        return logging.getLogger(self.name)

    def count(self, name: str, times: int = 1) -> None:
        """Count something across the fleet: `self.count("sold_out")` in a handler or a hook.

        It counts once the task is done; not if the handler raises or is called again for it. At
        most 64 names, of letters, digits, and - _ . only.
        """
        count(name, times)

    def start(self) -> Seeds:
        """The first tasks or their URLs. By default, `start_urls`."""
        if isinstance(self.start_urls, str):
            raise ConfigError(f"{type(self).__name__}.start_urls must be a list of URLs")
        return self.start_urls

    def blocked(self, page: Page) -> str | bool | None:
        """Whether the site sent a block instead of the page: True, or the kind of block in a word.

        A blocked page reaches no handler and is tried again, through another exit if there is one.
        False: it is not a block, whatever it looks like. None: no opinion.
        """
        return None

    def parse(self, page: Page) -> Any:
        """Read the pages that name no other handler. By default, only `rules` use them."""
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
    """The method with which a spider logs accounts in. None: it has none."""
    return getattr(spider, LOGIN) if _has_login(type(spider)) else None


def _has_login(spider: type) -> bool:
    """Whether `login` takes a session. A `login` that takes a page is an ordinary handler."""
    method = getattr(spider, LOGIN, None)
    if not isinstance(method, FunctionType | MethodType):
        return False
    return "session" in inspect.signature(method).parameters


def is_handler(spider: type[Spider], name: str) -> bool:
    """Whether a task may name this method as its handler. Tasks may be hostile."""
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
"""The methods that a task of the spider may name: those that the user wrote, and `parse`."""
