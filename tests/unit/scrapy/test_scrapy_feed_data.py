"""What messages of a feed ask for, and what becomes of those that make no sense."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.settings import Settings

from shoal.scrapy import dupefilter, queue
from shoal.scrapy.feeds.messages import BadMessage, request_of
from shoal.scrapy.utils import bytes_to_str

URL = "https://shop.example/a"


def made(content: Any, encoding: str = "utf-8") -> Request:
    return request_of(json.dumps(content).encode(encoding), encoding)


def refusal(data: bytes, encoding: str = "utf-8") -> str:
    with pytest.raises(BadMessage) as raised:
        request_of(data, encoding)
    return str(raised.value)


@pytest.mark.parametrize("data", [URL.encode(), f" {URL}\r\n".encode(), URL])
def test_a_plain_url(data: str | bytes) -> None:
    request = request_of(data, "utf-8")

    assert (request.url, request.method, request.dont_filter) == (URL, "GET", True)


def test_a_url_in_another_encoding() -> None:
    assert request_of("https://shop.example/ä".encode("latin-1"), "latin-1").url.endswith("%C3%A4")
    assert refusal(b"\xe4", "utf-8") == "it is not utf-8 text"


def test_an_object_with_everything() -> None:
    request = made(
        {
            "url": URL,
            "method": "put",
            "meta": {"job": [1, {"a": None}]},
            "headers": {"Accept": "text/html", "X-Two": ["a", "b"]},
            "cookies": {"session": "abc"},
            "priority": -7,
            "cb_kwargs": {"page": 2},
            "body": "hällo",
            "dont_filter": False,
        }
    )

    assert (request.url, request.method, request.priority) == (URL, "PUT", -7)
    assert request.meta == {"job": [1, {"a": None}]}
    assert request.headers.getlist("X-Two") == [b"a", b"b"]
    assert request.cookies == {"session": "abc"}
    assert request.cb_kwargs == {"page": 2}
    assert request.body == "hällo".encode()
    assert request.dont_filter is False


def test_an_object_with_a_url_alone() -> None:
    request = made({"url": URL})

    assert (request.method, request.body, request.dont_filter) == ("GET", b"", True)
    assert type(request) is Request


def test_cookies_may_be_a_list() -> None:
    cookies = [{"name": "a", "value": "b", "domain": "shop.example"}]

    assert made({"url": URL, "cookies": cookies}).cookies == cookies


def test_other_fields_are_form_data_in_the_url() -> None:
    request = made({"url": URL, "q": "a b", "page": 3, "tag": ["x", "y"], "meta": {"k": 1}})

    assert (request.method, request.url) == ("GET", f"{URL}?q=a+b&page=3&tag=x&tag=y")
    assert request.meta == {"k": 1}


def test_other_fields_are_form_data_in_the_body_of_a_post() -> None:
    request = made({"url": URL, "method": "post", "user": "me", "remember": True})

    assert (request.method, request.url, request.body) == ("POST", URL, b"user=me&remember=true")
    assert request.headers["Content-Type"] == b"application/x-www-form-urlencoded"


def test_a_callback_is_form_data_as_ever() -> None:
    """So it is with scrapy-redis, and many a JSON service has a parameter of that name."""
    assert made({"url": URL, "callback": "f"}).url == f"{URL}?callback=f"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a URL: ''"),
        (b"hello", "not a URL: 'hello' (it must begin with https:// or http://)"),
        (b"file:///etc/passwd", "not an http(s) URL: 'file:///etc/passwd'"),
        (b'{"url": "s3://bucket/key"}', "not an http(s) URL: 's3://bucket/key'"),
        (b"http://a/" + b"x" * 2**20, "it is longer than 1048576 bytes"),
        (b"http://", "not a URL: 'http://'"),
        (b"https://a b/", "not a URL: 'https://a b/'"),
        (b"{}", "it has no url"),
        (b'{"url": null}', "it has no url"),
        (b'{"link": "https://shop.example"}', "it has no url"),
        (b"[1]", "it is JSON, but no object"),
        (b"5", "it is JSON, but no object"),
        (b"[" * 100_000, "its JSON is nested too deep"),
        (b'{"url": 5}', "Expected `str`, got `int` - at `$.url`"),
        (b'{"url": "http://a", "method": "G T"}', "not a method: 'G T'"),
        (
            b'{"url": "http://a", "meta": [1]}',
            "Expected `object | null`, got `array` - at `$.meta`",
        ),
        (b'{"url": "http://a", "priority": "high"}', "Expected `int`, got `str` - at `$.priority`"),
        (
            b'{"url": "http://a", "x": {"y": 1}}',
            "form data is text, numbers or lists of these: 'x'",
        ),
        (b'{"url": "http://a", "x": 1, "body": "b"}', "it has a body, and form data too: x"),
    ],
)
def test_garbage_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    assert refusal(data) == reason


@given(st.binary(max_size=50) | st.text(max_size=50).map(str.encode))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    try:
        request = request_of(data, "utf-8")
    except BadMessage:
        return
    assert ":" in request.url


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    ["method", "meta", "headers", "cookies", "priority", "cb_kwargs", "body", "dont_filter", "x"]
)


@given(st.dictionaries(FIELDS, JSON, max_size=4))
def test_any_object_is_a_request_or_refused(fields: dict[str, Any]) -> None:
    try:
        request = made({"url": URL, **fields})
    except BadMessage:
        return
    assert request.url.startswith(URL)


def test_bytes_to_str() -> None:
    assert bytes_to_str(b"\xe4", "latin-1") == bytes_to_str("ä") == "ä"


@pytest.mark.parametrize(
    ("named", "is_told"),
    [
        (None, False),
        ("shoal.scrapy.queue.PriorityQueue", False),
        ("shoal.scrapy.queue.SpiderPriorityQueue", False),
        (queue.SpiderPriorityQueue, False),
        ("shoal.scrapy.queue.FifoQueue", True),
        ("shoal.scrapy.queue.SpiderStack", True),
        (queue.LifoQueue, True),
    ],
)
def test_projects_with_another_order_are_told(named: Any, is_told: bool) -> None:
    notice = queue.notice(Settings({"SCHEDULER_QUEUE_CLASS": named}))

    assert bool(notice) is is_told


class OwnFilter(dupefilter.RFPDupeFilter):
    """As many projects have one, to tell requests apart in their own way."""


@pytest.mark.parametrize(
    ("named", "is_told"),
    [
        ("scrapy.dupefilters.RFPDupeFilter", False),
        ("shoal.scrapy.dupefilter.RFPDupeFilter", False),
        (OwnFilter, True),
    ],
)
def test_projects_with_a_filter_of_their_own_are_told(named: Any, is_told: bool) -> None:
    notice = dupefilter.notice(Settings({"DUPEFILTER_CLASS": named}))

    assert bool(notice) is is_told
