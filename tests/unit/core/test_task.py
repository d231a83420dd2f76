"""Tasks on the wire: JSON that any language can write, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.cookies import Cookie, Jar
from shoal.core.redirects import redirected
from shoal.core.task import (
    DEFAULT_HANDLER,
    LaterTask,
    Task,
    decode,
    decode_seed,
    encode,
    without_unknown,
)

REFUSED = (msgspec.DecodeError, UnicodeDecodeError)

FULL = Task(
    url="https://shop.example/?a=1",
    task_id="5",
    crawl="shop",
    job_type="product",
    method="POST",
    headers={"X": "y"},
    body="q=1",
    body_is_base64=True,
    site="shop.example",
    depth=2,
    priority=-3,
    retry_count=1,
    max_retries=9,
    proxy_pool="eu",
    session="s",
    chain="account-17",
    meta={"a": [1, None, {"b": 2.5}]},
    parent="0011223344556677",
    created_at=datetime(2024, 1, 2, tzinfo=UTC),
    redirects=["https://shop.example/"],
    cookies=Jar((Cookie(name="sid", value="canary", domain="shop.example"),)),
    cookies_since=1,
    accept=(404,),
    on_failure="failed",
    not_before=datetime(2024, 1, 3, tzinfo=UTC),
    dont_filter=True,
    retry=True,
)


def test_defaults_are_not_sent() -> None:
    assert encode(Task(url="https://shop.example/")) == b'{"url":"https://shop.example/"}'


def test_only_a_url_is_needed() -> None:
    task = decode(b'{"url": "https://shop.example/"}')
    assert task == Task(url="https://shop.example/")
    assert (task.job_type, task.method, task.meta) == (DEFAULT_HANDLER, "GET", {})


def test_every_field_survives_the_wire() -> None:
    assert decode(encode(FULL)) == FULL
    assert set(msgspec.json.decode(encode(FULL))) == set(Task.__struct_fields__)


def test_cookies_are_not_shown() -> None:
    assert "canary" not in repr(FULL)


def test_tasks_do_not_share_what_can_be_changed() -> None:
    first, second = Task(url="a"), Task(url="b")
    first.meta["a"] = 1
    first.headers["a"] = "b"
    first.redirects.append("c")
    assert (second.meta, second.headers, second.redirects) == ({}, {}, [])


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\x80\x04pickle",
        b'{"url":5}',
        b'{"url":"a"',
        b'{"url":"a","depth":"1"}',
        b'{"url":"a","chain":""}',
        b'{"url":"a","chain":7}',
        b'{"url":"a","chain":"' + b"x" * 201 + b'"}',
        b'{"url":"a","headers":{"a":1}}',
        b'{"url":"\xff"}',
        b'{"url":"a","meta":{"a":' + b"[" * 100_000,
        b'{"url":"a","nope":{"a":' + b"[" * 100_000,
        b'{"nope":1}',
        b'{"url":"a","nope":1,"depth":"1"}',
    ],
)
@pytest.mark.parametrize("read", [decode, decode_seed])
def test_what_is_no_task_is_refused(read: Callable[[bytes], Task], wire: bytes) -> None:
    with pytest.raises(REFUSED):
        read(wire)


@given(wire=st.binary())
def test_any_bytes_are_a_task_or_a_decode_error(wire: bytes) -> None:
    try:
        task = decode(wire)
    except REFUSED:
        return
    assert isinstance(task, Task)


LATER = b'{"url":"http://a.example/","depth":2,"render":{"wait":[1.5,null]},"unknown":"x"}'


def test_fields_of_a_later_version_stay_with_a_stored_task() -> None:
    task = decode(LATER)
    assert (task.url, task.depth, task.method) == ("http://a.example/", 2, "GET")
    task.retry_count = 1
    changed = msgspec.structs.replace(task, priority=7)
    sent = msgspec.json.decode(encode(changed))
    assert sent == {**msgspec.json.decode(LATER), "retry_count": 1, "priority": 7}
    assert decode(encode(changed)) == changed


def test_they_are_refused_in_a_seed() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `render`"):
        decode_seed(LATER)


def test_they_are_not_shown() -> None:
    task = decode(b'{"url":"http://a.example/","token":"canary"}')
    assert isinstance(task, LaterTask)
    assert "canary" not in repr(task)
    assert type(without_unknown(task)) is Task
    assert encode(without_unknown(task)) == b'{"url":"http://a.example/"}'


@pytest.mark.parametrize(
    ("url", "fields"),
    [("http://a.example/next", {"render": 1}), ("http://b.example/", {})],
)
def test_they_go_along_with_a_redirect_but_to_no_other_site(
    url: str, fields: dict[str, object]
) -> None:
    asked = redirected(decode(b'{"url":"http://a.example/","render":1}'), 302, url)
    sent = msgspec.json.decode(encode(asked))
    assert {name: sent[name] for name in sent.keys() & {"render"}} == fields
