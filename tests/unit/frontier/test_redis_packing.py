"""Tasks as the queues on Redis keep them: whatever comes in comes out again, and takes little."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.identities import is_group
from shoal.core.task import MAX_PRIORITY, Task
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission
from shoal.frontier.redis.packing import pack, queue_of, unpack
from shoal.frontier.values import Entry

_admission = Admission(Rules())

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
hosts = st.sampled_from(
    [
        *("shop.example", "SHOP.Example", "shop.example.", "shop.example:80", "shop.example:443"),
        *("shop.example:8080", "127.0.0.1", "0x7f.1", "[::1]", "[::1]:8080", "[2001:DB8::1]"),
        *("bücher.example", "xn--bcher-kva.example", "user@shop.example", "u:p@shop.example:80"),
    ]
)
schemes = st.sampled_from(["http://", "https://", "HTTP://", "https:", "https:/", "http:\\\\"])
tails = st.sampled_from(["", "/", "?", "#", "/#top", "//", "/../a", " ", "/a\tb", "?q=1&a"])
urls = st.builds("{}{}{}{}".format, schemes, hosts, tails, text)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
zones = (
    st.none() | st.just(UTC) | st.builds(timezone, st.builds(timedelta, hours=st.integers(-9, 9)))
)
moments = st.datetimes(timezones=zones) | st.builds(
    lambda seconds: datetime.fromtimestamp(seconds, UTC), st.integers(-10, 2**34)
)
parents = text | st.binary(min_size=7, max_size=9).map(bytes.hex)

tasks = st.builds(
    Task,
    url=urls,
    task_id=text,
    job_type=st.just("parse") | text.filter(bool),
    method=st.sampled_from(["GET", "POST", "get"]),
    headers=st.dictionaries(text, text, max_size=3),
    body=st.none() | text,
    depth=st.integers(0, 2**31),
    priority=st.integers(-MAX_PRIORITY, MAX_PRIORITY),
    retry_count=st.integers(0, 255),
    max_retries=st.none() | st.integers(0, 100),
    proxy_pool=st.none() | text.filter(bool),
    session=st.none() | st.sampled_from(["none", "shop", "shop#alice", "shop#a.b+c@d.example"]),
    chain=st.none() | text.filter(bool),
    meta=st.dictionaries(text, json_values, max_size=3),
    parent=st.none() | parents | parents.map(str.upper),
    created_at=st.none() | moments,
    redirects=st.lists(text, max_size=3),
    dont_filter=st.booleans(),
).map(lambda task: replace(task, proxy_pool=None) if is_group(task.pool or "") else task)
"""A task with a session has no pool of its own: admission sees to that."""


def test_a_body_of_bytes_stays_one() -> None:
    task = Task(url="https://a.example/", body="/w==", body_is_base64=True, site="a.example")
    assert unpacked(Entry(bytes(8), task)) == task


def unpacked(entry: Entry) -> Task:
    fingerprint, task, losses = unpack(pack(entry), queue_of(entry.task), entry.task.priority)
    assert (fingerprint, losses) == (entry.fingerprint, 0)
    return task


@given(task=tasks)
def test_every_admitted_task_comes_back(task: Task) -> None:
    try:
        entry = _admission.admitted_as(task)
    except BadUrl:
        assume(False)
    again = unpacked(entry)
    assert again == entry.task
    # Equal moments may still differ in whether they have a zone at all.
    assert (again.created_at is None) == (entry.task.created_at is None)


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/catalog?page=2#top",
        "https://shop.example",
        "https://shop.example?page=2",
        "https://shop.example:443/x",
        "http://shop.example:80/x",
        "http://shop.example:8080/x",
        "http://shop.example.:8080/x",
        "https://SHOP.example/x",
        "https://user:secret@shop.example/x",
        "http://[::1]:8000/x",
        "https://[2001:0DB8::1]/x",
        "https:shop.example/x",
        " https://shop.example/x ",
    ],
)
def test_an_address_stays_as_it_was_written(url: str) -> None:
    assert unpacked(_admission.admit(Task(url=url))).url == url


@pytest.mark.parametrize("retry_count", [254, 255, 256, 2**31 - 1])
def test_more_tries_than_a_byte_can_count(retry_count: int) -> None:
    task = unpacked(_admission.admit(Task(url="http://a.example/", retry_count=retry_count)))
    assert task.retry_count == min(retry_count, 255)


def test_the_crawl_is_implied() -> None:
    entry = _admission.admitted_as(Task(url="http://a.example/", crawl="shop", session="s"))
    assert unpacked(entry) == replace(entry.task, crawl="")


def test_a_moment_in_another_zone_is_the_same_moment() -> None:
    """Also where the same moment, written otherwise, was packed just before."""
    utc = datetime(2024, 1, 1, 12, tzinfo=UTC)
    for moment in (utc, utc.astimezone(timezone(timedelta(hours=5))), utc):
        entry = _admission.admit(Task(url="http://a.example/", created_at=moment))
        assert unpacked(entry).created_at == utc


@pytest.mark.parametrize(("more", "most"), [({}, 85), ({"job_type": "product"}, 92)])
def test_a_followed_link_takes_little(more: dict[str, Any], most: int) -> None:
    url = "https://www.shop.example/catalog/garden/".ljust(60, "x")
    link = Task(
        url=url,
        depth=3,
        parent="00112233445566ff",
        created_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        **more,
    )
    assert len(pack(_admission.admit(link))) <= most
