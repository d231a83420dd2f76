"""Messages as tasks: plain ones, Celery's, Symfony Messenger's; and what is refused."""

from __future__ import annotations

import base64
import json
import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import task as wire_task
from shoal.core.task import Task
from shoal.feeds.formats import MOST_BYTES, MOST_TASKS, BadMessage, DeadTask, Wire, tasks_of

URL = "https://shop.example/p/1"
TASK = {"url": URL, "priority": 3, "meta": {"from": "php"}}
WANTED = Task(url=URL, priority=3, meta={"from": "php"})

CELERY = {"task": "shoal.seed", "id": "a-b", "lang": "py"}
MESSENGER = {"type": "App\\Message\\Crawl", "Content-Type": "application/json"}

urls = st.from_regex(r"https://[a-z]{1,8}\.example/[a-z0-9]{0,8}", fullmatch=True)


def celery(args: Any, kwargs: Any = None) -> bytes:
    return json.dumps([args, kwargs or {}, {"callbacks": None}]).encode()


def on_redis(
    body: bytes, headers: dict[str, Any] = CELERY, changes: dict[str, Any] | None = None
) -> bytes:
    """As Celery puts it into a list on Redis."""
    content = {
        "body": base64.b64encode(body).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": {"body_encoding": "base64", "delivery_tag": "x"},
    }
    return json.dumps(content | (changes or {})).encode()


def on_stream(body: bytes, headers: Any = MESSENGER) -> bytes:
    """As Messenger puts it into a stream."""
    return json.dumps({"body": body.decode(), "headers": headers}).encode()


def in_php(text: bytes) -> bytes:
    return b's:%d:"%b";' % (len(text), text)


def refused(*args: Any) -> str:
    with pytest.raises(BadMessage) as raised:
        tasks_of(Wire(*args))
    return str(raised.value)


JSON = json.dumps(TASK).encode()


@pytest.mark.parametrize(
    "wire",
    [
        Wire(JSON),
        Wire(b"\n " + JSON + b"\n"),
        Wire(celery([TASK]), CELERY, "application/json"),
        Wire(celery([[TASK]]), CELERY),
        Wire(celery([], TASK), CELERY),
        Wire(on_redis(celery([TASK]))),
        Wire(base64.b64encode(on_redis(celery([TASK])))),
        Wire(JSON, MESSENGER),
        Wire(json.dumps(TASK | {"body": None, "chain": None}).encode(), MESSENGER),
        Wire(on_stream(JSON)),
        Wire(in_php(on_stream(JSON))),
    ],
)
def test_a_task_in_all_its_forms(wire: Wire) -> None:
    assert tasks_of(wire) == [WANTED]


DEAD = {"_type": "dead", "url": URL, "fingerprint": "ab", "reason": "x", "retry_count": 3}
"""Some of what `--publish` tells of a dead task."""


@pytest.mark.parametrize("headers", [{}, MESSENGER])
def test_a_dead_task_that_was_published_says_retry(headers: dict[str, Any]) -> None:
    assert "it says that a task is dead" in refused(json.dumps(DEAD).encode(), headers)
    again = json.dumps(DEAD | {"retry": True}).encode()
    assert tasks_of(Wire(again, headers)) == [DeadTask(url=URL, fingerprint="ab", retry=True)]
    for more in ({"_type": "item"}, {"fingerprint": None}, {"url": 5}):
        assert refused(json.dumps(DEAD | {"retry": True} | more).encode(), headers)
    query = f'{URL}?q="_type"'
    assert tasks_of(Wire(query.encode())) == [Task(url=query)]


@given(st.lists(urls, min_size=1, max_size=20))
def test_urls(some: list[str]) -> None:
    expected = [Task(url=url) for url in some]
    assert tasks_of(Wire(some[0].encode())) == expected[:1]
    assert tasks_of(Wire(celery(some), CELERY)) == expected
    assert tasks_of(Wire(celery([some]), CELERY)) == expected
    assert tasks_of(Wire(on_redis(celery(some)))) == expected


@given(
    st.builds(
        Task,
        url=urls,
        priority=st.integers(-1000, 1000),
        headers=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
        body=st.none() | st.text(max_size=20),
        meta=st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=3),
    )
)
def test_any_task_comes_as_it_was_sent(task: Task) -> None:
    """Also one with a body and headers: it is no envelope."""
    encoded = wire_task.encode(task)
    assert tasks_of(Wire(encoded)) == [task]
    assert tasks_of(Wire(encoded, MESSENGER)) == [task]
    assert tasks_of(Wire(celery([json.loads(encoded)]), CELERY)) == [task]
    assert tasks_of(Wire(in_php(on_stream(encoded)))) == [task]


@given(
    st.binary(max_size=200),
    st.dictionaries(
        st.sampled_from(["task", "type", "content-type", "x"]), st.text(max_size=10) | st.none()
    ),
    st.text(max_size=10),
)
def test_anything_is_tasks_or_refused(body: bytes, headers: dict[str, Any], kind: str) -> None:
    for wire in (Wire(body, headers, kind), Wire(on_redis(body, headers)), Wire(in_php(body))):
        with suppress(BadMessage):
            assert all(isinstance(task, Task) for task in tasks_of(wire))


class TestRefused:
    @pytest.mark.parametrize(
        "args",
        [
            (pickle.dumps(([URL], {}, {})), CELERY, "application/x-python-serialize"),
            (pickle.dumps(URL),),
            (on_redis(b"?", changes={"content-type": "application/x-python-serialize"}),),
            (on_redis(pickle.dumps(URL)),),
        ],
    )
    def test_pickles(self, args: Any) -> None:
        assert "task_serializer = 'json'" in refused(*args)

    @pytest.mark.parametrize(
        "body",
        [
            b'O:36:"Symfony\\Component\\Messenger\\Envelope":2:{s:44:"x";}',
            b'O:36:\\"Symfony\\\\Component\\\\Messenger\\\\Envelope\\":2:{s:44:\\"x\\";}',
        ],
    )
    def test_php(self, body: bytes) -> None:
        assert "symfony_serializer" in refused(body)
        assert "symfony_serializer" in refused(on_stream(body, {}))
        assert "symfony_serializer" in refused(in_php(on_stream(body, [])))

    @pytest.mark.parametrize(
        ("args", "why"),
        [
            ((celery([URL]), CELERY | {"task": "tasks.add"}), "for the task 'tasks.add'"),
            ((celery([]), CELERY), "no arguments"),
            ((celery([5]), CELERY), "neither a URL nor a task: '5'"),
            ((celery({}), CELERY), "args are no list"),
            ((b"[]", CELERY), "protocol 2"),
            ((b"{", CELERY), "no JSON"),
            ((b"[]", MESSENGER), "no JSON object"),
            ((b'{"url": 5}', MESSENGER), "$.url"),
            ((b'{"uri": "x"}', MESSENGER), "uri"),
            ((b'{"uri": "x"}',), "uri"),
            ((on_stream(JSON, {}),), "name no task"),
            ((on_redis(b"", changes={"body": "€"}),), "not base64"),
            ((b"\xff\xfe",), "utf-8"),
            ((f"{URL}\n{URL}\n".encode(),), "several lines"),
            ((b"x" * (MOST_BYTES + 1),), "longer than"),
            ((celery([[URL] * (MOST_TASKS + 1)]), CELERY), "more than"),
            ((b"[" * 5000, CELERY), "no JSON"),
        ],
    )
    def test_what_is_wrong_is_said(self, args: Any, why: str) -> None:
        assert why in refused(*args)
