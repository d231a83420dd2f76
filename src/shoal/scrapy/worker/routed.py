"""Makes requests as they are sent: what a lease lends is on a copy, for the download handler
alone."""

from __future__ import annotations

from base64 import b64encode

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

from shoal.core.proxies import ProxyAddress
from shoal.fetch.port import Route
from shoal.scrapy.worker.sending_hooks import twin_of
from shoal.scrapy.worker.verdicts import Life

LOGIN = b"Proxy-Authorization"
_OF_THE_PROXY = ("_auth_proxy", "_scheme_proxy")
"""Keys under which Scrapy notes another proxy in a request's meta."""


def as_identity(life: Life, request: Request) -> Request:
    """Return a request with the User-Agent that its account has logged in with, whatever a
    middleware has set."""
    identity = life.lease.identity
    if identity is None or not identity.user_agent:
        return request
    headers = request.headers.copy()
    headers[b"User-Agent"] = identity.user_agent
    return twin_of(request, request.meta, headers)


def routed(life: Life, route: Route, request: Request, most_bytes: int | None) -> Request:
    """Return a request that goes by a route. Its answer may have `most_bytes`; None: Scrapy's own
    limit."""
    request = as_identity(life, request)
    meta, headers = dict(request.meta), request.headers.copy()
    headers.pop(LOGIN, None)
    for name in _OF_THE_PROXY:
        meta.pop(name, None)
    meta["proxy"] = None
    if (proxy := route.proxy) is not None:
        meta["proxy"] = _url_of(proxy)
        has_login = bool(proxy.user or proxy.password)
        if has_login:
            headers[LOGIN] = _login(proxy)
        # Scrapy keeps connections by the proxy's address; for plain http, whatever the login was.
        is_shared = has_login and urlparse_cached(request).scheme == "http"
        if is_shared or not route.keeps_connections:
            headers[b"Connection"] = b"close"
    if most_bytes is not None:
        meta["download_maxsize"] = most_bytes
    return twin_of(request, meta, headers)


def _url_of(proxy: ProxyAddress) -> str:
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    return f"http://{host}:{proxy.port}"


def _login(proxy: ProxyAddress) -> bytes:
    return b"Basic " + b64encode(f"{proxy.user}:{proxy.password}".encode())
