"""Cookies that travel: those of a request's cookie jar go with it through the frontier.

Scrapy keeps cookies in the memory of one process. A login on one machine must hold for the requests
that follow from it wherever they are sent, and after a restart. The jars of accounts do not travel
with requests: the frontier has them, and lends them (identity_jars.py).
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
"""Name, value, domain, path, whether it is for https only, and when it expires, if it does."""

Cookies = list[TravellingCookie]

HTTP_ONLY = "HttpOnly"
"""What Scrapy's jars call a cookie's attribute for which they have no field."""


class Jars:
    """The cookie jars of this process, by their `cookiejar` key."""

    def __init__(self, jars: MutableMapping[Any, CookieJar]) -> None:
        self._jars = jars

    @classmethod
    def of(cls, crawler: Crawler) -> Jars | None:
        """Those of a crawler whose engine is there; None where cookies are off, or are kept by
        something else than Scrapy's middleware or a subclass of it."""
        middleware = crawler.get_downloader_middleware(CookiesMiddleware)
        jars = getattr(middleware, "jars", None)
        return cls(jars) if jars is not None else None

    def jar(self, key: str) -> CookieJar:
        """One of them, made where it is not there."""
        return self._jars[key]

    def cookies_for(self, request: Request) -> Cookies:
        """All that its jar holds for the request's host.

        Also those for other paths of it: they are for the pages that this one leads to.
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
        """Put cookies into the request's jar. What is there already stays: it is newer."""
        if _goes_without(request):
            return
        jar = self._jars[request.meta.get("cookiejar")]
        for name, value, domain, path, secure, expires in cookies:
            if name not in jar._cookies.get(domain, {}).get(path, {}):
                jar.set_cookie(scrapys_cookie(name, value, domain, path, secure, expires))


def _bounded(cookies: Iterable[TravellingCookie]) -> Cookies:
    """Every request that follows from one carries its cookies. Of more than a jar may hold, the
    largest stay behind: what a login is made of is small."""
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
    """Whether it takes part in no session. A key that is none is for Scrapy to complain of."""
    try:
        hash(request.meta.get("cookiejar"))
    except TypeError:
        return True
    return bool(request.meta.get("dont_merge_cookies"))


def _domains(request: Request) -> list[str]:
    """The domains whose cookies are for this host."""
    host = urlparse_cached(request).hostname
    if not host:
        return []
    # To http.cookiejar, hosts without a dot are in a domain `.local`.
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
    """A cookie as Scrapy's jars have it. A domain with a dot before it is that of all its hosts."""
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
