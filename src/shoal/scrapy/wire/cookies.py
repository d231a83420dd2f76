"""Cookies that travel: those of a request's cookie jar go with it through the frontier.

Scrapy keeps cookies in the memory of one process. A login on one machine must hold for the requests
that follow from it wherever they are sent, and after a restart.
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

TravellingCookie = tuple[str, str | None, str, str, bool, int | None]
"""Name, value, domain, path, whether it is for https only, and when it expires, if it does."""

Cookies = list[TravellingCookie]


class Jars:
    """The cookie jars of this process, by their `cookiejar` key."""

    def __init__(self, jars: MutableMapping[Any, CookieJar]) -> None:
        self._jars = jars

    @classmethod
    def of(cls, crawler: Crawler) -> Jars | None:
        """Those of a crawler whose engine is there; None where cookies are off."""
        middleware = crawler.get_downloader_middleware(CookiesMiddleware)
        return cls(middleware.jars) if middleware else None

    def cookies_for(self, request: Request) -> Cookies:
        """All that its jar holds for the request's host.

        Also those for other paths of it: they are for the pages that this one leads to.
        """
        jar = None if _goes_without(request) else self._jars.get(request.meta.get("cookiejar"))
        by_domain = jar._cookies if jar is not None else {}
        if not by_domain:
            return []
        now = int(time.time())
        return [
            (cookie.name, cookie.value, cookie.domain, cookie.path, cookie.secure, cookie.expires)
            for domain in _domains(request)
            for by_name in by_domain.get(domain, {}).values()
            for cookie in by_name.values()
            if not cookie.is_expired(now)
        ]

    def restore(self, request: Request, cookies: Iterable[TravellingCookie]) -> None:
        """Put cookies into the request's jar. What is there already stays: it is newer."""
        if _goes_without(request):
            return
        jar = self._jars[request.meta.get("cookiejar")]
        for name, value, domain, path, secure, expires in cookies:
            if name not in jar._cookies.get(domain, {}).get(path, {}):
                jar.set_cookie(_cookie(name, value, domain, path, secure, expires))


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


def _cookie(
    name: str, value: str | None, domain: str, path: str, secure: bool, expires: int | None
) -> Cookie:
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
        rest={},
    )
