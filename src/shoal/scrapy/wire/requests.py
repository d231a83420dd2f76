"""Turns Scrapy's requests into tasks, and back. mapping.py says where their parts are in a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import scrapy
from scrapy import Request
from scrapy.http import Headers

from shoal.core.task import DEFAULT_HANDLER, Task
from shoal.scrapy.wire.callbacks import is_callback
from shoal.scrapy.wire.cookies import Cookies, Jars
from shoal.scrapy.wire.fingerprint import Fingerprinter, short_fingerprint
from shoal.scrapy.wire.loaded import class_name, find_class
from shoal.scrapy.wire.mapping import Extras, body_of, extras_of, headers_of, meta_of, task_of
from shoal.scrapy.wire.pools import Pools
from shoal.scrapy.wire.sessions import JAR, Sessions, is_session
from shoal.scrapy.wire.tagged import Unrestorable, Unserialisable, from_plain

_NO_METHOD = object()

SCHEMES = ("http", "https", "data")
"""Schemes that a request may have by default. Scrapy also reads files of the machine (`file`), and
more. A task is data from others, so a project that needs those must say so. Of `data:` the content
is the URL itself."""


class UnknownCallback(Unrestorable):
    """The spider has no callback of that name."""

    def __init__(self, spider: str, name: str) -> None:
        super().__init__(f"spider '{spider}' has no callback '{name}'")


class Requests:
    """Turns the requests of one spider into tasks, and back."""

    def __init__(
        self,
        spider: scrapy.Spider,
        fingerprinter: Fingerprinter,
        jars: Jars | None,
        schemes: Sequence[str] = SCHEMES,
        pools: Pools | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        """`schemes` lists the schemes that requests may have, `pools` chooses their exits, and
        `sessions` their accounts."""
        self._spider = spider
        self._fingerprinter = fingerprinter
        self._jars = jars
        self._schemes = frozenset(schemes)
        self._pools = pools or Pools()
        self._sessions = sessions or Sessions()
        self._names: dict[Any, str] = {}
        self._reserved: dict[str, Callable[..., Any]] = {}
        # If `_parse` is overridden, as by CrawlSpider, no callback and `parse` differ.
        self._has_own_default = type(spider)._parse is not scrapy.Spider._parse

    def reserve(self, name: str, callback: Callable[..., Any]) -> None:
        """Register a callback that is not the spider's, under a name that none of its methods
        has."""
        self._reserved[name] = callback

    def fingerprint(self, request: Request) -> bytes:
        """Return the request's fingerprint, by the project's own fingerprinter. Raises
        Unserialisable."""
        session = self._session_of(request)
        return short_fingerprint(self._fingerprinter.fingerprint(request), session)

    def encode(self, request: Request) -> Task:
        """Return the request as a task. Raises Unserialisable."""
        session = self._session_of(request)
        try:
            if (scheme := scheme_of(request.url)) not in self._schemes:
                raise Unserialisable("its address", f"is {scheme}:, which SHOAL_SCHEMES has not")
            values = self._values(request)
            cookies = self._cookies_for(request, session)
            task = task_of(values, cookies, parse_is_explicit=self._has_own_default)
            task.session = session
            if not is_session(session):  # The exits of an account are its group's.
                task.proxy_pool = self._pools.pool_of(request, scheme)
            return task
        except Unserialisable as odd:
            raise self._naming(request, odd) from None

    def _session_of(self, request: Request) -> str | None:
        if not self._sessions:
            return None
        try:
            return self._sessions.session_of(request, scheme_of(request.url))
        except Unserialisable as odd:
            raise self._naming(request, odd) from None

    def _naming(self, request: Request, odd: Unserialisable) -> Unserialisable:
        of_spider = f"{request} of spider '{self._spider.name}'"
        return Unserialisable(f"cannot queue {of_spider}:", str(odd))

    def _cookies_for(self, request: Request, session: str | None) -> Cookies:
        """Return the cookies that travel with a request. Those of an account stay with the
        account."""
        if self._jars is None or is_session(session):
            return []
        is_identitys = self._sessions and self._sessions.is_identity(request.meta.get(JAR))
        return [] if is_identitys else self._jars.cookies_for(request)

    def _values(self, request: Request) -> dict[str, Any]:
        """Return the values of a request, as Request.to_dict gives them: that method takes far
        longer to find the names of callbacks."""
        values = {name: getattr(request, name) for name in request.attributes}
        values["callback"] = self._name_of(request.callback, "callback")
        values["errback"] = self._name_of(request.errback, "errback")
        if type(request) is not Request:
            name = class_name(type(request))
            if find_class(name) is not type(request):
                raise Unserialisable(f"its class {name}", "is in no module by that name")
            values["_class"] = name
        return values

    def _name_of(self, method: Any, what: str) -> str | None:
        if method is None:
            return None
        is_own = getattr(method, "__self__", None) is self._spider
        function = getattr(method, "__func__", None) if is_own else None
        if function is not None and function in self._names:
            return self._names[function]
        for reserved, callback in self._reserved.items():
            if callback == method:
                return reserved
        name = self._find_name(method)
        if name is None or not is_callback(type(self._spider), name):
            shown = getattr(method, "__qualname__", None) or type(method).__name__
            kind = "method" if name is None else "callback"
            raise Unserialisable(what, f"is {shown}, which is no {kind} of the spider")
        if function is not None:
            self._names[function] = name
        return name

    def _find_name(self, method: Any) -> str | None:
        own, function = getattr(method, "__name__", ""), getattr(method, "__func__", None)
        if getattr(self._spider, own, _NO_METHOD) == method:
            return str(own)
        for cls in type(self._spider).__mro__:  # Private methods have another name in the class.
            for name, member in vars(cls).items():
                if member is function is not None and getattr(self._spider, name) == method:
                    return name
        return None

    def decode(self, task: Task) -> Request:
        """Return the request that a task was made of, or that a task from another source describes.

        Raises Unrestorable; UnknownCallback is a subclass.
        """
        if (scheme := scheme_of(task.url)) not in self._schemes:
            raise Unrestorable(f"its address is {scheme}:, which SHOAL_SCHEMES has not: {task.url}")
        extras = extras_of(task)
        meta = meta_of(task, extras)
        if task.depth:
            meta.setdefault("depth", task.depth)
        if task.retry_count:
            meta["retry_times"] = _count(meta.get("retry_times")) + task.retry_count
        if self._sessions and self._sessions.is_identity(meta.get(JAR)):
            del meta[JAR]  # Copied from another page. Only a lease lends an account's jar.
        request = self._request(task, extras, meta)
        if self._jars and extras.session and not is_session(task.session):
            self._jars.restore(request, extras.session)
        return request

    def _request(self, task: Task, extras: Extras, meta: dict[str, Any]) -> Request:
        """Return the request of a task, of the class it had. Raises Unrestorable."""
        arguments = self._arguments(task, extras, meta)
        cls = _class_of(extras.cls)
        try:
            request = cls(task.url, **arguments)
            if cls is not Request:  # Subclasses may add to what they are given.
                request.headers = Headers(arguments["headers"], encoding=extras.encoding)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise Unrestorable(f"not a request: {task.url}: {error}") from None
        return _with_url(request, task.url)

    def _arguments(self, task: Task, extras: Extras, meta: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of Request besides the URL."""
        arguments = {name: from_plain(value) for name, value in extras.attributes.items()}
        arguments |= {
            "callback": self._callback(task, extras),
            "errback": self._method(extras.errback) if extras.errback else None,
            "method": task.method,
            "headers": headers_of(task, extras),
            "body": body_of(task, extras),
            "cookies": from_plain(extras.cookies),
            "meta": meta,
            "encoding": extras.encoding,
            "priority": task.priority if extras.priority is None else extras.priority,
            "dont_filter": task.dont_filter,
            "flags": from_plain(extras.flags),
            "cb_kwargs": from_plain(extras.cb_kwargs),
        }
        return arguments

    def _callback(self, task: Task, extras: Extras) -> Callable[..., Any] | None:
        name = extras.callback or task.job_type
        if name == DEFAULT_HANDLER and not extras.callback:
            return None
        return self._reserved.get(name) or self._method(name)

    def _method(self, name: str) -> Callable[..., Any]:
        if not is_callback(type(self._spider), name):
            raise UnknownCallback(self._spider.name, name)
        method: Callable[..., Any] = getattr(self._spider, name)
        return method


def scheme_of(url: str) -> str:
    """Return the scheme of a URL: `https`, `file`, ..."""
    scheme, colon, _ = url.partition(":")
    return scheme.strip().lower() if colon else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _class_of(name: str) -> type[Request]:
    if not name:
        return Request
    cls = find_class(name)
    if cls is None or not issubclass(cls, Request):
        raise Unrestorable(f"no request class {name!r} is loaded here")
    return cls


def _with_url(request: Request, url: str) -> Request:
    """Give a request exactly the URL it had: Scrapy may escape twice what it has escaped once. Only
    seeds from other sources can hold characters that no URL has."""
    if request.url != url and url.isascii() and url.isprintable() and " " not in url:
        request._url = url
    return request
