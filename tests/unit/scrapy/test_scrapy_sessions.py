"""Which session a request of a project goes with, and what travels with it."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http.cookies import CookieJar
from scrapy.utils.request import RequestFingerprinter

from shoal.config import Rules
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.scrapy.wire.cookies import Jars, scrapys_cookie
from shoal.scrapy.wire.pools import Pools
from shoal.scrapy.wire.requests import Requests
from shoal.scrapy.wire.sessions import Sessions
from shoal.scrapy.wire.tagged import Unserialisable

URL = "https://shop.example/p/1"
KNOWN = {"shop#alice", "shop#bob", "forum#alice"}
OF_ALL = Rules(sessions=("forum", "shop"), session="shop", fingerprints="scrapy")
OF_SOME = Rules(sessions=("forum", "shop"), fingerprints="scrapy")


def sessions(rules: Rules, *, has_jars: bool = True) -> Sessions:
    return Sessions(rules, KNOWN.__contains__, has_jars=has_jars)


FOR_ALL, FOR_SOME = sessions(OF_ALL), sessions(OF_SOME)


@pytest.mark.parametrize(
    ("meta", "for_all", "for_some"),
    [
        ({}, "shop", None),
        ({"shoal_session": "shop"}, "shop", "shop"),
        ({"shoal_session": "forum#alice"}, "forum#alice", "forum#alice"),
        ({"shoal_session": "none"}, "none", None),
        ({"shoal_session": "none", "cookiejar": 7}, "none", None),
        ({"cookiejar": "shop#bob"}, "shop#bob", "shop#bob"),
        ({"cookiejar": None}, "shop", None),
        # What a page's meta has, copied as a whole: any account may go on.
        ({"shoal_session": "shop", "cookiejar": "shop#bob"}, "shop", "shop"),
        ({"dont_merge_cookies": True}, "none", None),
        ({"shoal_session": "shop", "dont_merge_cookies": True}, "none", None),
    ],
)
def test_the_session_of_a_request(
    meta: dict[str, Any], for_all: str | None, for_some: str | None
) -> None:
    request = Request(URL, meta=meta)
    assert FOR_ALL.session_of(request, "https") == for_all
    assert FOR_SOME.session_of(request, "https") == for_some


def test_the_name_of_an_account_will_do_where_its_group_is_that_of_the_crawl() -> None:
    request = Request(URL, meta={"cookiejar": "bob"})
    assert FOR_ALL.session_of(request, "https") == "shop#bob"
    assert FOR_SOME.session_of(request, "https") is None, "a jar of Scrapy's own"
    assert FOR_ALL.session_of(Request("data:,x"), "data") == "none"


@pytest.mark.parametrize(
    ("meta", "says"),
    [
        ({"shoal_session": "other"}, "meta['shoal_session'] names no session of the crawl"),
        ({"shoal_session": "shop#"}, "meta['shoal_session'] names no session of the crawl"),
        ({"shoal_session": 7}, "meta['shoal_session'] names no session of the crawl: 7"),
        ({"shoal_session": f"shop#{'a' * 200}"}, "names no session of the crawl"),
        (
            {"cookiejar": 1},
            "meta['cookiejar'] names no account of 'shop': 1; meta['shoal_session']",
        ),
        ({"cookiejar": "shop#carol"}, "meta['cookiejar'] names no account of 'shop': 'shop#carol'"),
        ({"proxy_pool": "dc"}, "meta['proxy_pool'] is not for requests with a session"),
    ],
)
def test_what_makes_no_sense_is_an_error_of_the_request(meta: dict[str, Any], says: str) -> None:
    with pytest.raises(Unserialisable) as error:
        FOR_ALL.session_of(Request(URL, meta=meta), "https")
    assert says in str(error.value)


def test_only_pages_have_sessions() -> None:
    with pytest.raises(Unserialisable, match="is ftp:, for which there are no sessions"):
        FOR_ALL.session_of(Request("ftp://shop.example/1"), "ftp")


def test_without_jars_there_are_no_sessions() -> None:
    bare = sessions(OF_SOME, has_jars=False)
    assert bare.session_of(Request(URL), "https") is None
    with pytest.raises(Unserialisable, match="no CookiesMiddleware of Scrapy's"):
        bare.session_of(Request(URL, meta={"shoal_session": "shop"}), "https")


class Scene:
    """A process whose jars have something in them."""

    def __init__(self, rules: Rules) -> None:
        jars: dict[Any, CookieJar] = {key: CookieJar() for key in (None, 7, "shop#alice")}
        for key, jar in jars.items():
            jar.set_cookie(
                scrapys_cookie("sid", f"of {key}", "shop.example", "/", secure=True, expires=None)
            )
        pools = Pools(Rules(pools=("dc",), proxy_pool="dc"))
        self.jars = jars
        self.requests = Requests(
            *(Spider(name="shop"), RequestFingerprinter(), Jars(jars), ("https",), pools),
            sessions(rules),
        )

    def stored(self, **meta: Any) -> Task:
        return self.requests.encode(Request(URL, meta=meta))


def cookies_in(task: Task) -> list[str]:
    return [cookie[1] for cookie in task.meta.get("scrapy", {}).get("session", [])]


def test_the_cookies_of_an_account_are_in_no_queue() -> None:
    scene = Scene(OF_ALL)
    assert cookies_in(scene.stored()) == []
    assert cookies_in(scene.stored(shoal_session="none")) == ["of None"]
    assert cookies_in(scene.stored(shoal_session="none", cookiejar=7)) == ["of 7"]
    assert cookies_in(scene.stored(shoal_session="none", cookiejar="shop#alice")) == []


def test_only_a_lease_lends_the_jar_of_an_account() -> None:
    """Whatever the stored meta says; nor can anybody put cookies into it by way of the queue."""
    scene = Scene(OF_ALL)
    copied = scene.stored(shoal_session="none", cookiejar="shop#alice", page=1)
    assert scene.requests.decode(copied).meta == {"shoal_session": "none", "page": 1}
    forged = {"session": [["sid", "forged", "shop.example", "/other", False, None]]}
    for session in ("none", "shop"):
        meta = {"cookiejar": "shop#alice", "scrapy": forged}
        scene.requests.decode(Task(url=URL, session=session, meta=meta))
    assert [cookie.value for cookie in scene.jars["shop#alice"]] == ["of shop#alice"]


def test_the_exits_of_an_account_are_those_of_its_group() -> None:
    scene = Scene(OF_ALL)
    with_one, without = scene.stored(), scene.stored(shoal_session="none")
    assert (with_one.session, with_one.proxy_pool, with_one.pool) == ("shop", None, "@shop")
    assert (without.session, without.proxy_pool, without.pool) == ("none", "dc", "dc")


def test_two_sessions_see_two_pages() -> None:
    scene, admission = Scene(OF_ALL), Admission(OF_ALL)
    known = set()
    for session in ("shop", "shop#alice", "forum", "none"):
        request = Request(URL, meta={"shoal_session": session})
        fingerprint = scene.requests.fingerprint(request)
        assert admission.admitted_as(Task(url=URL, session=session)).fingerprint == fingerprint
        known.add(fingerprint)
    assert len(known) == 4
    assert Admission(OF_ALL).fingerprint(URL) == scene.requests.fingerprint(Request(URL))


def test_a_crawl_without_sessions_knows_what_it_knew() -> None:
    plain = Scene(Rules(fingerprints="scrapy"))
    without = Scene(OF_ALL).requests.fingerprint(Request(URL, meta={"shoal_session": "none"}))
    assert plain.requests.fingerprint(Request(URL)) == without
    assert plain.stored(shoal_session="shop").session is None
