"""Cookies that travel: those of a request's cookie jar go with it through the frontier.

Scrapy keeps cookies in the memory of one process. A login on one machine must hold for the requests
that follow from it wherever they are sent, and after a restart. The jars of accounts do not travel
with requests: the frontier keeps and lends them (identity_jars.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, MutableMapping
from http.cookiejar import Cookie
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http.cookies import CookieJar, potential_domain_matches
from scrapy.utils.httpobj import urlparse_cached

from shoal.core.cookies import MAX_IN_JAR, MAX_JAR_BYTES

TravellingCookie = tuple[str, str | None, str, str, bool, int | None]
"""Name, value, domain, path, whether it is for https only, and when it expires, if ever."""

Cookies = list[TravellingCookie]

HTTP_ONLY = "HttpOnly"
"""The name of the HttpOnly attribute in Scrapy's jars, which have no field for it."""


class Jars:
    """The cookie jars of this process, by their `cookiejar` key."""

    def __init__(self, jars: MutableMapping[Any, CookieJar]) -> None:
        self._jars = jars

    @classmethod
    def of(cls, crawler: Crawler) -> Jars | None:
        """Return the jars of a crawler whose engine exists. None where cookies are off, or are kept
        by something other than Scrapy's middleware or a subclass of it."""
        middleware = crawler.get_downloader_middleware(CookiesMiddleware)
        jars = getattr(middleware, "jars", None)
        return cls(jars) if jars is not None else None

    def jar(self, key: str) -> CookieJar:
        """Return the jar of a key, made if it does not exist."""
        return self._jars[key]

    def cookies_for(self, request: Request) -> Cookies:
        """Return all cookies in a request's jar for the request's host.

        This includes those for other paths of the host, for the pages that this one leads to.
        """
        jar = None if _goes_without(request) else self._jars.get(request.meta.get("cookiejar"))
        by_domain = jar._cookies if jar is not None else {}
        if not by_domain:
            return []
        now = int(time.time())
        return _bounded(
            (cookie.name, cookie.value, cookie.domain, cookie.path, cookie.secure, cookie.expires)
            for domain in _domains(request)
            for by_name in by_domain.get(domain, {}).values()
            for cookie in by_name.values()
            if not cookie.is_expired(now)
        )

    def restore(self, request: Request, cookies: Iterable[TravellingCookie]) -> None:
        """Put cookies into the request's jar. Cookies that are there already stay: they are
        newer."""
        if _goes_without(request):
            return
        jar = self._jars[request.meta.get("cookiejar")]
        for name, value, domain, path, secure, expires in cookies:
            if name not in jar._cookies.get(domain, {}).get(path, {}):
                jar.set_cookie(scrapys_cookie(name, value, domain, path, secure, expires))


def _bounded(cookies: Iterable[TravellingCookie]) -> Cookies:
    """Limit the cookies to what a jar may hold, as every request that follows carries them. The
    largest are left out: those of a login are small."""
    found, left = list(cookies), MAX_JAR_BYTES
    sizes = sorted((_size(cookie), at) for at, cookie in enumerate(found))
    kept = set()
    for size, at in sizes[:MAX_IN_JAR]:
        left -= size
        if left >= 0:
            kept.add(at)
    return [cookie for at, cookie in enumerate(found) if at in kept]


def _size(cookie: TravellingCookie) -> int:
    name, value, domain, path, *_ = cookie
    return len(name) + len(value or "") + len(domain) + len(path)


def _goes_without(request: Request) -> bool:
    """Whether a request takes part in no session. An unusable key is left for Scrapy to report."""
    try:
        hash(request.meta.get("cookiejar"))
    except TypeError:
        return True
    return bool(request.meta.get("dont_merge_cookies"))


def _domains(request: Request) -> list[str]:
    """Return the domains whose cookies are for the request's host."""
    host = urlparse_cached(request).hostname
    if not host:
        return []
    # http.cookiejar puts hosts without a dot into a domain `.local`.
    names = [host] if "." in host else [host, f"{host}.local"]
    return [domain for name in names for domain in potential_domain_matches(name)]


def scrapys_cookie(
    name: str,
    value: str | None,
    domain: str,
    path: str,
    secure: bool,
    expires: int | None,
    *,
    http_only: bool = False,
) -> Cookie:
    """Return a cookie as Scrapy's jars hold it. A leading dot in a domain means all its hosts."""
    return Cookie(
        version=0,
        name=name,
        value=value,
        port=None,
        port_specified=False,
        domain=domain,
        domain_specified=domain.startswith("."),
        domain_initial_dot=domain.startswith("."),
        path=path,
        path_specified=True,
        secure=secure,
        expires=expires,
        discard=expires is None,
        comment=None,
        comment_url=None,
        rest={HTTP_ONLY: ""} if http_only else {},
    )
