"""The cookies of an account in Scrapy's jars: put in before a request is sent, read when it is
over.

Cookies keep all their properties both ways. In Scrapy's jars a leading dot means that a cookie is
for all hosts of a domain, and hosts without a dot are in a domain `.local`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from http.cookiejar import Cookie as ScrapysCookie

from msgspec.structs import replace

from shoal.core.cookies import Cookie, Jar
from shoal.scrapy.wire.cookies import HTTP_ONLY, scrapys_cookie

_LOCAL = ".local"


def to_scrapys(jar: Jar) -> Iterator[ScrapysCookie]:
    """Yield the cookies of a jar, as Scrapy's jars hold them."""
    for cookie in jar.cookies:
        domain = cookie.domain if "." in cookie.domain else f"{cookie.domain}{_LOCAL}"
        yield scrapys_cookie(
            cookie.name,
            cookie.value,
            domain if cookie.host_only else f".{domain}",
            cookie.path,
            cookie.secure,
            _whole(cookie.expires),
            http_only=cookie.http_only,
        )


def from_scrapys(cookies: Iterable[ScrapysCookie], before: Jar, host: str, now: float) -> Jar:
    """Return what one of Scrapy's jars holds, after it was filled from `before` and a request was
    sent to `host`. A cookie that has not changed since is the same object; so is the jar, if
    nothing has."""
    known = {cookie.key: cookie for cookie in before.cookies}
    undotted = {name for name in (host, *(it.domain for it in before.cookies)) if "." not in name}
    found: dict[object, Cookie] = {}
    for each in cookies:
        cookie = _cookie(each, undotted, now)
        same = known.get(cookie.key)
        found[cookie.key] = same if same is not None and _says_the_same(cookie, same) else cookie
    kept = Jar(tuple(it for it in before.cookies if it.key in found))
    return kept.after(found.values(), now)


def _cookie(found: ScrapysCookie, undotted: Collection[str], now: float) -> Cookie:
    domain = found.domain.removeprefix(".")
    if (bare := domain.removesuffix(_LOCAL)) in undotted:
        domain = bare
    return Cookie(
        name=found.name,
        value=found.value or "",
        domain=domain,
        host_only=not found.domain.startswith("."),
        path=found.path,
        secure=found.secure,
        http_only=any(name.lower() == HTTP_ONLY.lower() for name in vars(found)["_rest"]),
        expires=found.expires,
        set_at=now,
    )


def _says_the_same(cookie: Cookie, other: Cookie) -> bool:
    """Whether two cookies differ at most in when they were set."""
    is_as_long = _whole(cookie.expires) == _whole(other.expires)
    return is_as_long and replace(cookie, expires=other.expires, set_at=other.set_at) == other


def _whole(expires: float | None) -> int | None:
    """Return a time in whole seconds, as Scrapy's jars hold it."""
    return None if expires is None else int(expires)
