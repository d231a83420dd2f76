"""Descriptions of archived pages: what a later version wrote can be read."""

from __future__ import annotations

import msgspec
import pytest

from shoal.archive.description import describe, described, page_of
from shoal.archive.port import RawPage
from shoal.core.content import page_digest
from shoal.core.task import LaterTask, Task, without_unknown
from shoal.errors import StorageFailed

BODY = b"<p>"


def written(**changes: object) -> bytes:
    """The description of a page whose task has these fields as well."""
    task = Task(url="http://a.example/")
    page = RawPage(
        task=task,
        fingerprint=bytes(8),
        status=200,
        headers=[],
        fetched_at=1.0,
        body=BODY,
        digest=page_digest(BODY),
    )
    fields = msgspec.json.decode(describe(page))
    return msgspec.json.encode({**fields, "task": {**fields["task"], **changes}})


def test_a_task_with_a_field_more_is_read() -> None:
    task = page_of(described(written(render=1), "here"), BODY, "here").task
    assert isinstance(task, LaterTask)
    assert without_unknown(task) == Task(url="http://a.example/")


def test_who_has_fetched_a_page_is_known() -> None:
    """Earlier versions have written no identity."""
    plain = written()
    assert b"identity" not in plain
    assert page_of(described(plain, "here"), BODY, "here").identity == ""
    fetched = msgspec.json.encode({**msgspec.json.decode(plain), "identity": "shop#alice"})
    page = page_of(described(fetched, "here"), BODY, "here")
    assert page.identity == "shop#alice"
    assert b'"identity":"shop#alice"' in describe(page)


def test_a_task_that_is_none_is_damage() -> None:
    with pytest.raises(StorageFailed, match="here is damaged: Expected `str`, got `int`"):
        page_of(described(written(url=5), "here"), BODY, "here")
