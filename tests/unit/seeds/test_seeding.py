"""Seeds that others write: read alike wherever they come from, and collected from the inbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.core import task as wire
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Added, CrawlState, Entry, Stats
from shoal.seeds.seeding import collect, read_seed

json_like = st.dictionaries(
    st.sampled_from(wire.Task.__struct_fields__),
    st.none() | st.text() | st.integers() | st.lists(st.text()),
)


@pytest.mark.parametrize(
    "text", [b"http://a.example/", b" http://a.example/\r\n", b'"http:\\/\\/a.example/"\n']
)
def test_a_seed_may_be_a_url(text: bytes) -> None:
    assert read_seed(text) == wire.Task(url="http://a.example/")


def test_a_seed_may_be_a_task() -> None:
    task = wire.Task(url="http://a.example/", job_type="product", meta={"n": 1})
    assert read_seed(b"\n " + wire.encode(task)) == task


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"url": 7}', "url"),
        (b'{"url": "http://a.example/", "colour": "red"}', "colour"),
        (b'{"job_type": "product"}', "url"),
        (b"{", "truncated"),
        (b'"http://a.example/', "truncated"),
        (b'"http://a.example/\\ud800"', "truncated"),
        (b"\xff\xfe", "utf-8"),
        (b'{"url": "http://a.example/", "meta": {"a": ' + b"[" * 9999, "nested"),
    ],
)
def test_what_is_no_seed_is_named(text: bytes, reason: str) -> None:
    with pytest.raises(BadUrl, match=reason):
        read_seed(text)


@given(text=st.binary() | st.text().map(str.encode) | json_like.map(json.dumps).map(str.encode))
def test_any_bytes_are_a_task_that_can_be_kept_or_a_bad_url(text: bytes) -> None:
    try:
        entry = Admission(Rules()).admit(read_seed(text))
    except BadUrl:
        return
    assert wire.decode(wire.encode(entry.task)) == entry.task


class Inbox:
    """A frontier, as far as `collect` knows it: it takes two entries at a time."""

    def __init__(self, *texts: bytes) -> None:
        self.texts = list(texts)
        self.queued: list[str] = []
        self.refused: list[bytes] = []
        self.locked = False
        self.calls = 0

    async def stats(self, crawl: str) -> Stats:
        return Stats(
            crawl=crawl,
            state=CrawlState.RUNNING,
            rules=Rules(),
            created_at=0.0,
            inbox=len(self.texts),
        )

    async def collect(self, crawl: str, read: Callable[[bytes], Entry]) -> Added:
        self.calls += 1
        before = len(self.queued)
        for text in [] if self.locked else self.texts[:2]:
            try:
                self.queued.append(read(text).task.url)
            except BadUrl:
                self.refused.append(text)
        if not self.locked:
            del self.texts[:2]
        return Added(len(self.queued) - before)


async def empty(inbox: Inbox, rules: Rules | None = None) -> Added:
    return await collect(cast(Frontier, inbox), "crawl", rules or Rules())


async def test_an_inbox_is_emptied_batch_by_batch() -> None:
    inbox = Inbox(*(f"http://a.example/{n}".encode() for n in range(5)))
    assert await empty(inbox) == Added(5)
    assert inbox.texts == []
    assert inbox.queued == [f"http://a.example/{n}" for n in range(5)]


async def test_what_is_refused_does_not_stop_it() -> None:
    inbox = Inbox(b"nonsense", b"{", b"http://b.example/", b"http://a.example/1")
    assert await empty(inbox, Rules(allowed_hosts=("a.example",))) == Added(1)
    assert inbox.queued == ["http://a.example/1"]
    assert inbox.refused == [b"nonsense", b"{", b"http://b.example/"]


async def test_an_empty_inbox_is_left_alone() -> None:
    inbox = Inbox()
    assert await empty(inbox) == Added()
    assert inbox.calls == 0


async def test_one_that_somebody_else_empties_is_left_to_them() -> None:
    inbox = Inbox(b"http://a.example/")
    inbox.locked = True
    assert await empty(inbox) == Added()
    assert inbox.calls == 1
