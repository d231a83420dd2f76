"""Tasks on the wire: JSON that any language can write, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.cookies import Cookie, Jar
from shoal.core.task import DEFAULT_HANDLER, Task, decode, encode

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
    dont_filter=True,
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
        b'{"url":"a","nope":1}',
        b'{"url":"a","chain":""}',
        b'{"url":"a","chain":7}',
        b'{"url":"a","chain":"' + b"x" * 201 + b'"}',
        b'{"url":"a","headers":{"a":1}}',
        b'{"url":"\xff"}',
        b'{"url":"a","meta":{"a":' + b"[" * 100_000,
    ],
)
def test_what_is_no_task_is_refused(wire: bytes) -> None:
    with pytest.raises(REFUSED):
        decode(wire)


@given(wire=st.binary())
def test_any_bytes_are_a_task_or_a_decode_error(wire: bytes) -> None:
    try:
        task = decode(wire)
    except REFUSED:
        return
    assert isinstance(task, Task)
