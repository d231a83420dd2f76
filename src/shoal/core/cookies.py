"""A cookie jar as a value: RFC 6265, with what browsers have added since.

A response changes a jar by a list of cookies (`changes`): each is set, or deleted if it has
expired. `Jar.after` applies them to a jar. So a jar can be kept by code that knows nothing of
responses, and the changes of several responses can be combined in order.

Nothing here shows the value of a cookie: it may be all that a login consists of.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from can_ada import URL

from shoal.core import set_cookie
from shoal.core.networks import is_address
from shoal.core.suffixes import is_public_suffix
from shoal.core.urls import parse

MAX_PER_DOMAIN = 50
MAX_IN_JAR = 300
MAX_JAR_BYTES = 64 * 1024
"""The most bytes of all cookies in a jar. Servers accept less than that. There may be a jar for
each of ten thousand accounts, in the frontier and in the memory of workers."""

_Key = tuple[str, str, str, bool]


class Cookie(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One cookie. As a change it means: set this cookie, or delete it if it has expired."""

    name: str
    value: str
    domain: str
    """The host that set it, or the domain whose hosts all receive it."""
    host_only: bool = False
    path: str = "/"
    secure: bool = False
    http_only: bool = False
    expires: float | None = None
    """None: kept as long as the jar."""
    set_at: float = 0.0
    """Of two cookies with the same key, the later one wins."""

    @property
    def key(self) -> _Key:
        """What identifies the cookie: a new one with the same key replaces it."""
        return self.domain, self.path, self.name, self.host_only

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return len(self.name) + len(self.value) + len(self.domain) + len(self.path)

    def is_over(self, now: float) -> bool:
        """Whether it has expired."""
        return self.expires is not None and self.expires <= now

    def is_for(self, url: URL) -> bool:
        """Whether a request for this address carries it, unless it has expired."""
        if self.secure and url.protocol != "https:":
            return False
        host = url.hostname
        is_for_host = host == self.domain if self.host_only else _is_within(host, self.domain)
        return is_for_host and _is_below(url.pathname, self.path)

    def __repr__(self) -> str:
        return f"Cookie({self.name!r} of {self.domain}{self.path})"


class Jar(msgspec.Struct, frozen=True, array_like=True):
    """Cookies, in the order in which they were first set."""

    cookies: tuple[Cookie, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.cookies)

    def __repr__(self) -> str:
        return f"Jar({len(self.cookies)} cookies)"

    def header(self, url: str, now: float) -> str:
        """The Cookie header of a request for this address; empty if no cookie applies. Longer paths
        go first; of these, the cookie that was set first."""
        if not self.cookies:
            return ""
        parsed = parse(url)
        sent = [it for it in self.cookies if not it.is_over(now) and it.is_for(parsed)]
        sent.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent)

    def after(self, changed: Iterable[Cookie], now: float) -> Jar:
        """The jar with these changes, without expired cookies. If it is too full, the oldest go."""
        kept = {cookie.key: cookie for cookie in self.cookies}
        for cookie in changed:
            kept[cookie.key] = cookie  # A cookie that is replaced keeps its place.
        return Jar(_bounded([it for it in kept.values() if not it.is_over(now)]))

    def with_newer(self, other: Jar, now: float) -> Jar:
        """The cookies of both jars; where both have one of the same key, the later one."""
        own = {cookie.key: cookie.set_at for cookie in self.cookies}
        newer = [it for it in other.cookies if it.set_at >= own.get(it.key, 0.0)]
        return self.after(newer, now)

    def says_the_same(self, other: Jar) -> bool:
        """Whether hosts would receive the same from both jars, apart from expiry."""
        return _said(self) == _said(other)


EMPTY = Jar()


def changes(jar: Jar, lines: Iterable[str], url: str, now: float) -> list[Cookie]:
    """The changes that the Set-Cookie lines of a response from this address make to a jar.

    Cookies that the address has no right to set are left out.
    """
    parsed = parse(url)
    found = (_cookie(said, parsed, now) for line in lines if (said := set_cookie.read(line, now)))
    return [it for it in found if it is not None and not _hides_secure(it, parsed, jar)]


def _cookie(said: set_cookie.SetCookie, url: URL, now: float) -> Cookie | None:
    host, domain, host_only = url.hostname, said.domain, not said.domain
    if domain and (is_address(host) or is_public_suffix(domain)):
        if domain != host:
            return None
        host_only = True  # If the site is a public suffix, only the site itself gets the cookie.
    if not host_only and not _is_within(host, domain):
        return None
    if not _is_allowed(said, url):
        return None
    return Cookie(
        name=said.name,
        value=said.value,
        domain=host if host_only else domain,
        host_only=host_only,
        path=said.path or _default_path(url.pathname),
        secure=said.secure,
        http_only=said.http_only,
        expires=said.expires,
        set_at=now,
    )


def _is_allowed(said: set_cookie.SetCookie, url: URL) -> bool:
    """Whether a cookie keeps the promise of its name prefix. A secure one must come over https."""
    if said.secure and url.protocol != "https:":
        return False
    name = said.name.lower()
    if name.startswith("__host-"):
        return said.secure and not said.domain and said.path == "/"
    return said.secure or not name.startswith("__secure-")


def _hides_secure(cookie: Cookie, url: URL, jar: Jar) -> bool:
    """Whether a cookie from a plain connection would replace a secure one: an attacker between the
    host and the crawler could have set it."""
    if url.protocol == "https:":
        return False
    return any(
        kept.secure
        and kept.name == cookie.name
        and (_is_within(kept.domain, cookie.domain) or _is_within(cookie.domain, kept.domain))
        and _is_below(cookie.path, kept.path)
        for kept in jar.cookies
    )


def _is_within(host: str, domain: str) -> bool:
    """Whether a host is this domain or a subdomain of it."""
    return host == domain or (host.endswith(f".{domain}") and not is_address(host))


def _is_below(path: str, parent: str) -> bool:
    if not path.startswith(parent):
        return False
    return path == parent or parent.endswith("/") or path[len(parent)] == "/"


def _default_path(path: str) -> str:
    """The directory of a path."""
    return path[: path.rindex("/")] or "/" if path.startswith("/") else "/"


def _bounded(cookies: list[Cookie]) -> tuple[Cookie, ...]:
    kept: list[Cookie] = []
    of_domain: dict[str, int] = {}
    left = MAX_JAR_BYTES
    for cookie in reversed(cookies):
        count = of_domain.get(cookie.domain, 0)
        if count < MAX_PER_DOMAIN and cookie.size <= left:
            of_domain[cookie.domain] = count + 1
            left -= cookie.size
            kept.append(cookie)
    return tuple(reversed(kept[:MAX_IN_JAR]))


def _said(jar: Jar) -> set[tuple[_Key, str]]:
    return {(cookie.key, cookie.value) for cookie in jar.cookies}
