"""Sessions that travel: with Scrapy's own middleware, in two processes' worth of jars."""

from __future__ import annotations

import time
from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.request import RequestFingerprinter

from shoal.core import task as wire
from shoal.core.cookies import MAX_JAR_BYTES
from shoal.scrapy.wire.cookies import Jars
from shoal.scrapy.wire.requests import Requests

LOGIN = "https://shop.example/login"
ACCOUNT = "https://shop.example/account"


class Crawler:
    """As much of a crawler as is asked for its middleware."""

    def __init__(self, middleware: CookiesMiddleware | None) -> None:
        self._middleware = middleware
        self.settings = Settings()
        self.spider = None

    def get_downloader_middleware(self, cls: type) -> Any:
        return self._middleware if isinstance(self._middleware, cls) else None


class Machine:
    """One process: its cookies, and its way of reading and writing tasks."""

    def __init__(self) -> None:
        self.middleware = CookiesMiddleware()
        self.spider = scrapy.Spider(name="shop")
        # Older ones want it, newer ones warn of it.
        self._more: Any = {} if scrapy.version_info >= (2, 14) else {"spider": self.spider}
        crawler: Any = Crawler(self.middleware)
        self.jars = Jars.of(crawler)
        self.requests = Requests(self.spider, RequestFingerprinter(), self.jars)

    def answer(self, request: Request, *cookies: str) -> None:
        """The site answers, and sets cookies."""
        response = Response(request.url, headers={"Set-Cookie": list(cookies)})
        self.middleware.process_response(request, response, **self._more)

    def sends(self, request: Request) -> set[str]:
        """The cookies that would go out with a request."""
        self.middleware.process_request(request, **self._more)
        header = request.headers.get("Cookie") or b""
        return set(header.decode().split("; ")) - {""}

    def queue(self, request: Request) -> bytes:
        return wire.encode(self.requests.encode(request))

    def take(self, queued: bytes) -> Request:
        return self.requests.decode(wire.decode(queued))


@pytest.fixture
def here() -> Machine:
    return Machine()


@pytest.fixture
def there() -> Machine:
    return Machine()


def test_a_login_holds_on_another_machine(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "session=abc; HttpOnly", "lang=en; Path=/; Max-Age=3600")
    request = there.take(here.queue(Request(ACCOUNT)))
    assert there.sends(request) == {"session=abc", "lang=en"}


def test_it_holds_for_the_pages_after_that(here: Machine, there: Machine) -> None:
    third = Machine()
    here.answer(Request(LOGIN), "session=abc; Path=/account")
    public = there.take(here.queue(Request("https://shop.example/public")))
    assert there.sends(public) == set()
    assert third.sends(third.take(there.queue(Request(ACCOUNT)))) == {"session=abc"}


def test_what_is_here_stays(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "session=old; Path=/", "lang=en; Path=/")
    queued = here.queue(Request(ACCOUNT))
    there.answer(Request(LOGIN), "session=new; Path=/")
    assert there.sends(there.take(queued)) == {"session=new", "lang=en"}


@pytest.mark.parametrize("key", [1, "a", (1, "b"), None])
def test_each_jar_is_its_own(here: Machine, there: Machine, key: Any) -> None:
    meta = {"cookiejar": key}
    here.answer(Request(LOGIN, meta=meta), "session=abc")
    here.answer(Request(LOGIN, meta={"cookiejar": "other"}), "session=other")
    assert there.sends(there.take(here.queue(Request(ACCOUNT, meta=meta)))) == {"session=abc"}
    elsewhere = there.take(here.queue(Request(ACCOUNT, meta={"cookiejar": "unused"})))
    assert there.sends(elsewhere) == set()


def test_other_hosts_see_nothing_of_it(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "host=1", "domain=2; Domain=shop.example; Path=/")
    assert b"scrapy" not in here.queue(Request("https://shop.example.evil.example/"))
    below = Request("https://www.shop.example/")
    assert there.sends(there.take(here.queue(below))) == here.sends(below.copy())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "a.co.uk", "localhost:8080"])
def test_hosts_of_all_kinds(here: Machine, there: Machine, host: str) -> None:
    here.answer(Request(f"http://{host}/login"), "session=abc; Path=/")
    assert there.sends(there.take(here.queue(Request(f"http://{host}/x")))) == {"session=abc"}


def test_secure_cookies_stay_secure(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "session=abc; Secure; Path=/")
    plain = there.take(here.queue(Request("http://shop.example/")))
    assert there.sends(plain) == set()
    assert there.sends(Request(ACCOUNT)) == {"session=abc"}


def test_expired_ones_stay_behind(
    here: Machine, there: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.answer(Request(LOGIN), "short=1; Max-Age=60", "long=2; Max-Age=6000")
    queued = here.queue(Request(ACCOUNT))
    later = time.time() + 600
    monkeypatch.setattr(time, "time", lambda: later)
    assert b"short" not in here.queue(Request(ACCOUNT))
    assert there.sends(there.take(queued)) == {"long=2"}


def test_requests_that_want_none_carry_none(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "session=abc; Path=/")
    alone = Request(ACCOUNT, meta={"dont_merge_cookies": True})
    assert b"session" not in here.queue(alone)
    task = wire.decode(here.queue(Request(ACCOUNT)))
    task.meta["dont_merge_cookies"] = True
    there.requests.decode(task)
    assert there.sends(Request(ACCOUNT)) == set()


def test_a_request_without_cookies_says_nothing_of_them(here: Machine) -> None:
    assert here.queue(Request(ACCOUNT)) == b'{"url":"%s","site":"shop.example"}' % ACCOUNT.encode()
    assert not here.middleware.jars, "looking makes no jar"


def test_a_key_that_is_none_is_scrapys_to_refuse(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "session=abc; Path=/")
    task = wire.decode(here.queue(Request(ACCOUNT, meta={"cookiejar": [1]})))
    task.meta["scrapy"] = {"session": [["a", "b", "shop.example", "/", False, None]]}
    assert there.requests.decode(task).meta == {"cookiejar": [1]}


def test_a_cookie_without_a_value(here: Machine, there: Machine) -> None:
    here.answer(Request(LOGIN), "flag; Path=/")
    sent = here.sends(Request(ACCOUNT))
    assert sent
    assert there.sends(there.take(here.queue(Request(ACCOUNT)))) == sent


@pytest.mark.parametrize("bomb", [["huge=" + "x" * 1_000_000], [f"c{n}=1" for n in range(4000)]])
def test_a_site_cannot_make_every_request_large(
    here: Machine, there: Machine, bomb: list[str]
) -> None:
    here.answer(Request(LOGIN), *bomb, "a=1")
    queued = here.queue(Request(ACCOUNT))
    assert len(queued) < 2 * MAX_JAR_BYTES
    assert "a=1" in there.sends(there.take(queued))


def test_cookies_that_are_off() -> None:
    crawler: Any = Crawler(None)
    assert Jars.of(crawler) is None


class WithoutJars(CookiesMiddleware):
    def __init__(self) -> None:
        """Has cookies somewhere else."""


def test_middlewares_of_a_projects_own() -> None:
    class Own(CookiesMiddleware):
        pass

    kept: Any = Crawler(Own())
    elsewhere: Any = Crawler(WithoutJars())
    assert Jars.of(kept) is not None
    assert Jars.of(elsewhere) is None
