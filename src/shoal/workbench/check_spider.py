"""Finds mistakes in a spider, as far as possible without a crawl."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from shoal import config
from shoal.config import CONFIG_FILE, Settings
from shoal.core.near_names import meant
from shoal.core.networks import is_private_name
from shoal.core.task import DEFAULT_HANDLER, DIRECT, Task
from shoal.core.urls import parse
from shoal.errors import BadUrl, ConfigError
from shoal.fleet.target import create
from shoal.frontier.admission import Admission
from shoal.frontier.facts import check_name
from shoal.spider.arguments import arguments_of
from shoal.spider.attributes import mistaken_attributes, mistaken_line
from shoal.spider.catalogue import catalogues_of, first_tasks
from shoal.spider.crawl_names import check_places
from shoal.spider.hooks import mistaken_hooks
from shoal.spider.items import is_item_class
from shoal.spider.own_settings import settings_of
from shoal.spider.page import Page
from shoal.spider.scrapy_words import translated
from shoal.spider.spider import ON_FAILURE, Spider, handlers_of
from shoal.spider.starting import unread_starts
from shoal.workbench.findings import Finding
from shoal.workbench.sources import FOLLOWING, Source, file_of, own_classes

MAX_URLS = 1_000
"""How many start URLs are checked."""
_FOLLOW_TAKES = {name: set(inspect.signature(getattr(Page, name)).parameters) for name in FOLLOWING}


def check_spider(spider: type[Spider], settings: Settings | None) -> list[Finding]:
    """All mistakes in a spider. Without settings, because those of shoal.toml are wrong, some
    checks are skipped."""
    look = _Look(spider)
    found = [
        *_attributes(look),
        *_values(look),
        *_name(look),
        *_calls(look),
        *_handlers(look),
        *_hooks(look),
        *_items(look),
    ]
    if settings is not None:
        if not found:  # Otherwise its error would repeat what was found.
            found += _made(look, settings)
        found += _starts(look, settings)
    return found


class _Look:
    """A spider and the source of its classes."""

    def __init__(self, spider: type[Spider]) -> None:
        self.spider = spider
        self.name = spider.__name__
        self.sources = [Source(cls) for cls in own_classes(spider)]

    def finding(self, name: str, message: str) -> Finding:
        """A finding at an attribute or a method, or at the class if there is none of this name."""
        for source in self.sources:
            if line := source.line_of(name):
                return Finding(source.file, line, message)
        if self.sources:
            return Finding(self.sources[0].file, self.sources[0].line, message)
        return Finding(file_of(self.spider), 0, message)


def _attributes(look: _Look) -> Iterator[Finding]:
    for name, wanted in mistaken_attributes(look.spider).items():
        yield look.finding(name, mistaken_line(name, wanted))


def _values(look: _Look) -> Iterator[Finding]:
    """Check each setting alone, so that all wrong ones are reported."""
    try:
        given = settings_of(look.spider)
    except ConfigError as error:
        if not str(error).startswith(CONFIG_FILE):  # check_file reports it.
            yield look.finding("name", str(error))
        return
    for name, value in given.items():
        try:
            config.build({name: value})
        except ConfigError as error:
            yield look.finding(name, f"{look.name}: {error}")


def _name(look: _Look) -> Iterator[Finding]:
    """A name that no crawl can have."""
    name = look.spider.name
    if not isinstance(name, str):  # It is said above.
        return
    try:
        check_name(name)
        check_places(look.spider)
    except ConfigError as error:
        yield look.finding("name", str(error))


def _calls(look: _Look) -> Iterator[Finding]:
    handlers = handlers_of(look.spider)
    for source in look.sources:
        for call in source.calls():
            for word in set(call.keywords) - _FOLLOW_TAKES[call.name]:
                yield Finding(source.file, call.line, _no_argument(call.name, word))
        for named in source.named():
            if named.method in handlers or (named.keyword, named.method) == (ON_FAILURE,) * 2:
                continue
            what = f"{look.name} has no handler {named.method!r}{meant(named.method, handlers)}"
            yield Finding(source.file, named.line, what)


def _no_argument(call: str, word: str) -> str:
    if ours := translated(call, word):
        return f"page.{call}() has no {word}=: {ours}"
    return f"page.{call}() has no {word}={meant(word, _FOLLOW_TAKES[call])}"


def _handlers(look: _Look) -> Iterator[Finding]:
    """The handlers that cannot be called with just a page."""
    for name in {DEFAULT_HANDLER, *_named_handlers(look)} & handlers_of(look.spider):
        if not _takes(getattr(look.spider, name), look.spider, name, 1):
            yield look.finding(name, f"{look.name}.{name} must take a page, and nothing else")


def _named_handlers(look: _Look) -> set[str]:
    named = (named for source in look.sources for named in source.named())
    return {each.method for each in named if each.keyword == "handler"}


def _hooks(look: _Look) -> Iterator[Finding]:
    for name, mistake in mistaken_hooks(look.spider):
        yield look.finding(name, mistake)
    if not _takes(look.spider.start, look.spider, "start", 0):
        yield look.finding("start", f"{look.name}.start must take nothing but self")
    if not _takes(look.spider.blocked, look.spider, "blocked", 1):
        yield look.finding("blocked", f"{look.name}.blocked must take a page, and nothing else")


def _takes(method: Callable[..., Any], spider: type, name: str, count: int) -> bool:
    static = inspect.getattr_static(spider, name, None)
    selves = 0 if isinstance(static, staticmethod | classmethod) else 1
    try:
        inspect.signature(method).bind(*range(selves + count))
    except (TypeError, ValueError):
        return False
    return True


def _items(look: _Look) -> Iterator[Finding]:
    """The items in the spider's module whose key is not one of their fields."""
    for thing in vars(inspect.getmodule(look.spider) or look.spider).values():
        if not isinstance(thing, type) or thing.__module__ != look.spider.__module__:
            continue
        if not is_item_class(thing) or issubclass(thing, dict):
            continue
        key = getattr(thing, "__key__", None) or ()
        fields = {name for cls in thing.__mro__ for name in vars(cls).get("__annotations__", {})}
        for name in (key,) if isinstance(key, str) else key:
            if name not in fields:
                source = Source(thing)
                what = f"{thing.__name__}: the key {name!r} is not a field{meant(name, fields)}"
                yield Finding(source.file, source.line, what)


def _made(look: _Look, settings: Settings) -> Iterator[Finding]:
    """The mistakes that show when the spider is created, as every worker does."""
    if not any(argument.is_required for argument in arguments_of(look.spider).values()):
        try:
            create(look.spider, settings.plugins)
        except ConfigError as error:
            yield look.finding("plugins", str(error))
    rules = settings.rules
    if rules.proxy_pool not in (None, DIRECT, *rules.pools):
        there_are = ", ".join(rules.pools) or "none"
        message = f"proxy_pool: no pool {rules.proxy_pool!r} (there are: {there_are})"
        yield look.finding("proxy_pool", message)


def _starts(look: _Look, settings: Settings) -> Iterator[Finding]:
    spider = look.spider
    yield from _catalogues(look)
    if spider.start is not Spider.start:  # It may do anything, so only a crawl can tell.
        return
    if isinstance(spider.start_urls, str):
        yield look.finding("start_urls", f"{look.name}.start_urls must be a list of URLs")
        return
    admission = Admission(settings.rules)
    for url in list(spider.start_urls)[:MAX_URLS]:
        if flaw := _flaw_of(url, admission, settings):
            yield look.finding("start_urls", flaw)
    if flaw := unread_starts(spider):
        yield look.finding("parse", flaw)


def _catalogues(look: _Look) -> Iterator[Finding]:
    handlers = handlers_of(look.spider)
    for task in first_tasks(catalogues_of(look.spider)):
        if task.job_type not in handlers:
            what = f"{look.name}.catalogue: no handler {task.job_type!r}"
            yield look.finding("catalogue", what + meant(task.job_type, handlers))


def _flaw_of(url: Any, admission: Admission, settings: Settings) -> str:
    if not isinstance(url, str):
        return f"start_urls: {url!r:.80} is not a URL"
    try:
        admission.admit(Task(url=url))
    except BadUrl as error:
        return f"start_urls: {error}"
    if not settings.allow_private and is_private_name(parse(url).hostname):
        return f"start_urls: {url} is a private address: allow_private = True lets it be crawled"
    return ""
