"""Requests as tasks, and back: nothing of them is lost on the way."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
from scrapy.utils.request import RequestFingerprinter

from shoal.core import task as wire
from shoal.core.task import MAX_PRIORITY, Task
from shoal.scrapy.spiders import RedisMixin
from shoal.scrapy.wire.fingerprint import short_fingerprint
from shoal.scrapy.wire.requests import Requests, UnknownCallback
from shoal.scrapy.wire.tagged import Unrestorable, Unserialisable

URL = "https://shop.example/p?b=1&a=2"


class Shop(scrapy.Spider):
    name = "shop"

    def parse(self, response: Any) -> None: ...

    def product(self, response: Any, **kwargs: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...

    def __private(self, response: Any) -> None: ...

    @staticmethod
    def static(response: Any) -> None: ...

    @classmethod
    def of_class(cls, response: Any) -> None: ...

    def callbacks(self) -> list[Any]:
        return [None, self.product, self.__private, self.static, self.of_class]


class Sale(Shop):
    name = "sale"

    def product(self, response: Any, **kwargs: Any) -> None: ...

    def of_base(self) -> Any:
        return super().product


class Unmethodical:
    """Something that can be called, and is no method."""

    def __call__(self, response: Any) -> None: ...


class Crawling(CrawlSpider):
    name = "crawling"
    rules = (Rule(LinkExtractor(), callback="product", follow=True),)

    def product(self, response: Any) -> None: ...


class Guarded(RedisMixin, scrapy.Spider):
    """Has what a task must not reach."""

    name = "guarded"
    was_touched = False

    class Helper:
        """Can be called."""

    tool = Unmethodical()

    @property
    def secret(self) -> Any:
        self.was_touched = True
        return print

    @functools.cached_property
    def cached(self) -> Any:
        self.was_touched = True
        return print

    def closed(self, reason: Any) -> None: ...

    def _parse_item(self, response: Any) -> None: ...

    def __own(self, response: Any) -> None: ...

    wrapped = functools.wraps(_parse_item)(lambda self, response: None)


class Signed(Request):
    attributes = (*Request.attributes, "signature")

    def __init__(self, *args: Any, signature: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.signature = signature


class Fixed:
    """A project's own idea of when two requests are one."""

    def __init__(self, fingerprint: bytes) -> None:
        self._fingerprint = fingerprint

    def fingerprint(self, request: Request) -> bytes:
        return self._fingerprint


class Unhashable:
    """Something that can be called and cannot be a key."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, response: Any) -> None: ...


SHOP = Shop()


def codec(spider: scrapy.Spider = SHOP) -> Requests:
    return Requests(spider, RequestFingerprinter(), None)


def over_the_wire(task: Task) -> Task:
    return wire.decode(wire.encode(task))


def round_trip(request: Request, spider: scrapy.Spider = SHOP) -> Request:
    requests = codec(spider)
    return requests.decode(over_the_wire(requests.encode(request)))


def assert_same(request: Request, spider: scrapy.Spider = SHOP) -> None:
    """As far as Scrapy itself writes requests down; it does not know static methods."""
    restored = round_trip(request, spider)
    assert type(restored) is type(request)
    assert (restored.callback, restored.errback) == (request.callback, request.errback)
    bare = {"callback": None, "errback": None}
    assert restored.replace(**bare).to_dict() == request.replace(**bare).to_dict()


texts = st.text(max_size=10)
values = st.recursive(
    st.none() | st.integers() | texts | st.binary(max_size=10) | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner)
        | st.dictionaries(texts | st.integers(), inner, max_size=2)
    ),
    max_leaves=5,
)
metas = st.dictionaries(texts | st.sampled_from(["scrapy", "depth", "$dict"]), values, max_size=3)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,10}", fullmatch=True)
header_values = st.binary(max_size=10) | st.text(st.characters(codec="ascii"), max_size=10)
requests = st.builds(
    Request,
    url=st.sampled_from([URL, "http://[::1]:8080/ü?q=%zz|", "https://a.example/a b#c", "data:,x"]),
    callback=st.sampled_from(SHOP.callbacks()),
    errback=st.sampled_from([None, SHOP.failed]),
    method=st.sampled_from(["GET", "post", "PURGE"]),
    headers=st.dictionaries(names, header_values | st.lists(header_values, max_size=2)),
    body=header_values,
    cookies=st.dictionaries(texts, texts)
    | st.lists(st.fixed_dictionaries({"name": texts, "value": texts, "domain": texts})),
    meta=metas,
    encoding=st.sampled_from(["utf-8", "latin-1"]),
    priority=st.integers(),
    dont_filter=st.booleans(),
    flags=st.lists(texts),
    cb_kwargs=st.dictionaries(names, values, max_size=2),
)


@given(requests)
def test_requests_come_back(request: Request) -> None:
    assert_same(request)


@pytest.mark.parametrize(
    "request_",
    [
        JsonRequest(URL, data={"b": 1, "a": "ü"}, dumps_kwargs={"indent": 1}),
        JsonRequest(URL, data={}, callback=SHOP.product, method="PUT"),
        FormRequest(URL, formdata={"q": "ü", "r": ["1", "2"]}),
        FormRequest(URL, formdata={"q": "1"}, method="GET"),
        XmlRpcRequest(URL, params=(1, "x"), methodname="call"),
        Signed(URL, signature=(b"\xff", 7)),
    ],
    ids=lambda request: f"{type(request).__name__} {request.method}",
)
def test_other_kinds_of_requests_come_back(request_: Request) -> None:
    assert_same(request_)


def test_headers_that_were_removed_stay_removed() -> None:
    request = JsonRequest(URL, data={})
    del request.headers["Content-Type"]
    assert b"Content-Type" not in round_trip(request).headers


def test_a_url_is_the_same_to_the_byte() -> None:
    request = Request(URL)
    request._url = "https://shop.example/%2541|`%zz?ü".replace("ü", "%C3")
    assert round_trip(request).url == request.url


class TestMapping:
    """What others see of a request, and can write themselves."""

    def test_the_fields_of_a_task(self) -> None:
        request = Request(
            URL,
            SHOP.product,
            method="POST",
            headers={"Accept": "text/html"},
            body="q=ü",
            priority=7,
            dont_filter=True,
            meta={"depth": 2, "shelf": "A"},
        )
        assert codec().encode(request) == Task(
            url=URL,
            job_type="product",
            method="POST",
            headers={"Accept": "text/html"},
            body="q=ü",
            site="shop.example",
            depth=2,
            priority=7,
            meta={"shelf": "A"},
            dont_filter=True,
        )

    def test_bytes_that_are_no_text(self) -> None:
        task = codec().encode(Request(URL, method="POST", body=b"\xff"))
        assert (task.body, task.body_is_base64, task.meta) == ("/w==", True, {})
        of_old = Task(url=URL, method="POST", meta={"scrapy": {"body": {"$bytes": "/w=="}}})
        assert codec().decode(task).body == codec().decode(of_old).body == b"\xff"
        with pytest.raises(Unrestorable, match="the body is not base64"):
            codec().decode(Task(url=URL, body="/", body_is_base64=True))

    def test_a_plain_link_says_nothing_more(self) -> None:
        wanted = b'{"url":"https://shop.example/p?b=1&a=2","site":"shop.example"}'
        assert wire.encode(codec().encode(Request(URL))) == wanted

    @pytest.mark.parametrize("priority", [10**20, -(10**20)])
    def test_a_priority_out_of_range_is_the_utmost(self, priority: int) -> None:
        assert abs(codec().encode(Request(URL, priority=priority)).priority) == MAX_PRIORITY

    def test_a_seed_of_others(self) -> None:
        seed = wire.decode(
            b'{"url": "http://shop.example/\xc3\xbc b", "job_type": "product", "meta": {"n": 1},'
            b' "headers": {"accept": "*/*"}, "body": "x", "method": "POST", "depth": 3}'
        )
        request = codec().decode(seed)
        assert request.url == "http://shop.example/%C3%BC%20b"
        assert request.callback == SHOP.product
        assert request.meta == {"n": 1, "depth": 3}
        assert (request.body, request.headers["Accept"]) == (b"x", b"*/*")

    def test_tries_so_far_are_retry_times(self) -> None:
        task = codec().encode(Request(URL))
        assert "retry_times" not in codec().decode(task).meta
        task.retry_count = 2
        assert codec().decode(task).meta["retry_times"] == 2
        task.meta["retry_times"] = 3
        assert codec().decode(task).meta["retry_times"] == 5

    def test_decoding_changes_nothing_in_the_task(self) -> None:
        request = Request(URL, meta={"list": [1], "depth": 1}, cb_kwargs={"a": [1]})
        task = codec().encode(request)
        before = wire.encode(task)
        restored = codec().decode(task)
        restored.meta["list"].append(2)
        restored.meta["more"] = 1
        restored.cb_kwargs["a"].append(2)
        assert wire.encode(task) == before

    def test_nor_does_encoding_in_the_request(self) -> None:
        request = Request(URL, meta={"list": [1], "depth": 1, "scrapy": 1})
        task = codec().encode(request)
        task.meta.clear()
        assert request.meta == {"list": [1], "depth": 1, "scrapy": 1}


class TestCallbacks:
    def test_parse_is_the_default(self) -> None:
        assert codec().encode(Request(URL)).job_type == "parse"
        assert codec().encode(Request(URL, SHOP.parse)) == codec().encode(Request(URL))
        assert round_trip(Request(URL, SHOP.parse)).callback is None

    def test_but_not_of_a_spider_with_another_default(self) -> None:
        spider = Crawling()
        assert round_trip(Request(URL), spider).callback is None
        assert round_trip(Request(URL, spider.parse), spider).callback == spider.parse

    def test_a_rule_of_a_crawl_spider(self) -> None:
        spider = Crawling()
        page = scrapy.http.HtmlResponse(URL, body=b"<a href='/x'>x</a>", encoding="utf-8")
        (request,) = spider._requests_to_follow(page)
        assert request is not None
        assert_same(request, spider)
        assert round_trip(request, spider).callback == spider._callback

    def test_a_method_of_another_spider_of_the_same_class(self) -> None:
        codec().encode(Request(URL, SHOP.product))
        with pytest.raises(Unserialisable, match=r"Shop\.product, which is no method"):
            codec().encode(Request(URL, Shop().product))

    def test_a_method_that_is_overridden(self) -> None:
        spider = Sale()
        with pytest.raises(Unserialisable, match=r"Shop\.product, which is no method"):
            codec(spider).encode(Request(URL, spider.of_base()))

    @pytest.mark.parametrize(
        "callback",
        [lambda response: None, functools.partial(SHOP.product, x=1), print, Shop, Unhashable()],
        ids=["lambda", "partial", "function", "class", "object"],
    )
    def test_what_is_no_method_is_refused(self, callback: Any) -> None:
        for arguments in ({"callback": callback}, {"errback": callback}):
            (name,) = arguments
            with pytest.raises(Unserialisable) as caught:
                codec().encode(Request(URL, **arguments))
            begin = f"cannot queue <GET {URL}> of spider 'shop': {name} is "
            assert str(caught.value).startswith(begin)

    @pytest.mark.parametrize("name", ["parse_x", "name", "__init__", "__class__", ""])
    def test_unknown_ones_are_named(self, name: str) -> None:
        with pytest.raises(UnknownCallback) as caught:
            codec().decode(Task(url=URL, job_type=name))
        assert str(caught.value) == f"spider 'shop' has no callback '{name}'"

    @pytest.mark.parametrize(
        "name",
        [
            *("from_crawler", "update_settings", "handles_request", "close", "closed", "log"),
            *("start", "start_requests", "_set_crawler", "logger", "custom_settings", "crawler"),
            *("secret", "cached", "Helper", "tool", "setup_redis", "_open_feed", "server"),
        ],
    )
    def test_data_names_nothing_but_callbacks(self, name: str) -> None:
        spider = Guarded()
        for task in (
            Task(url=URL, job_type=name),
            Task(url=URL, meta={"scrapy": {"errback": name}}),
            Task(url=URL, meta={"scrapy": {"callback": name}}),
        ):
            with pytest.raises(UnknownCallback):
                codec(spider).decode(task)
        assert not spider.was_touched

    def test_nor_can_they_be_queued(self) -> None:
        spider = Guarded()
        with pytest.raises(Unserialisable, match=r"Guarded\.closed, which is no callback"):
            codec(spider).encode(Request(URL, callback=spider.closed))

    @pytest.mark.parametrize("name", ["_parse_item", "_Guarded__own", "wrapped"])
    def test_every_method_of_the_spiders_own_classes_is_one(self, name: str) -> None:
        spider = Guarded()
        made = codec(spider).decode(Task(url=URL, job_type=name))
        assert made.callback == getattr(spider, name)

    @pytest.mark.parametrize(
        ("spider", "name"),
        [
            *((Crawling, name) for name in ("_callback", "_errback", "_parse", "parse_start_url")),
            (SitemapSpider, "_parse_sitemap"),
        ],
    )
    def test_so_are_those_of_kinds_of_spiders(self, spider: type[scrapy.Spider], name: str) -> None:
        made = codec(spider("kind")).decode(Task(url=URL, job_type=name))
        assert getattr(made.callback, "__name__", "") == name


class TestSchemes:
    @pytest.mark.parametrize(
        "url", ["file:///etc/passwd", "FILE:///etc/passwd", "ftp://a.example/x", "s3://bucket/key"]
    )
    def test_a_task_leads_to_the_web_alone(self, url: str) -> None:
        with pytest.raises(Unrestorable, match="SHOAL_SCHEMES"):
            codec().decode(Task(url=url))
        with pytest.raises(Unserialisable, match="SHOAL_SCHEMES"):
            codec().encode(Request(url))

    def test_unless_the_project_says_otherwise(self) -> None:
        files = Requests(SHOP, RequestFingerprinter(), None, ["file"])
        task = over_the_wire(files.encode(Request("file:///pages/1.html")))
        assert files.decode(task).url == "file:///pages/1.html"
        with pytest.raises(Unrestorable):
            files.decode(Task(url=URL))


class TestErrors:
    def test_what_cannot_travel_names_request_key_and_spider(self) -> None:
        for field in ("meta", "cb_kwargs"):
            arguments: dict[str, Any] = {field: {"page": [SHOP]}}
            request = Request(URL, **arguments)
            with pytest.raises(Unserialisable) as caught:
                codec().encode(request)
            says = f"cannot queue <GET {URL}> of spider 'shop': {field}['page'][0] is of class Shop"
            assert str(caught.value) == says

    def test_a_class_that_cannot_be_found(self) -> None:
        class Local(Request):
            pass

        with pytest.raises(Unserialisable, match=r"its class .*Local is in no module"):
            codec().encode(Local(URL))

    @pytest.mark.parametrize(
        "extras",
        [
            "mine",
            7,
            {"class": "no_such_module.Request"},
            {"class": "builtins.dict"},
            {"class": "subprocess.Popen"},
            {"class": 7},
            {"headers": 7},
            {"headers": [7]},
            {"body": 7},
            {"cookies": {"$bytes": 7}},
            {"cb_kwargs": 7},
            {"flags": 7},
            {"meta": 7},
            {"meta": {"$dict": 7}},
            {"encoding": "no-such-encoding"},
            {"attributes": {"no_such": 1}},
            {"attributes": {"url": "x"}},
            {"session": [["a"]]},
            {"errback": "no_such"},
        ],
        ids=str,
    )
    def test_extras_of_somebody_elses_making(self, extras: Any) -> None:
        with pytest.raises(Unrestorable):
            codec().decode(Task(url=URL, meta={"scrapy": extras}))

    def test_a_seed_without_a_scheme(self) -> None:
        with pytest.raises(Unrestorable, match="SHOAL_SCHEMES"):
            codec().decode(Task(url="shop.example"))


class TestFingerprints:
    def test_are_of_scrapys_own(self) -> None:
        one, same, other = (
            Request(URL),
            Request("https://shop.example/p?a=2&b=1"),
            Request(URL, method="POST"),
        )
        fingerprint = codec().fingerprint
        assert len(fingerprint(one)) == 8
        assert fingerprint(one) == fingerprint(same) != fingerprint(other)

    @pytest.mark.parametrize("size", [0, 1, 4, 20, 64])
    def test_of_a_project_may_be_of_any_length(self, size: int) -> None:
        found = {
            Requests(SHOP, Fixed(b"0" * (size - 1) + last if size else b""), None).fingerprint(
                Request(URL)
            )
            for last in (b"1", b"2")
        }
        assert len(found) == (2 if size else 1)

    def test_are_the_same_in_every_version(self) -> None:
        """They are in Redis: another way to make them would fetch everything again."""
        sha1 = hashlib.sha1(b"x").digest()
        assert short_fingerprint(sha1).hex() == "2f01e1ab376f4e2a"
