"""Tasks for files, and the references of items to them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.core.files import (
    FILE,
    FileRef,
    file_task,
    is_large,
    known_as,
    no_file,
    note_of,
    redirected_file,
    refs_in,
    with_refs,
    with_room,
)
from shoal.core.task import Task, decode, encode
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission

ADMISSION = Admission(Rules(sessions=("shop",)))
URL = "https://cdn.example/a.png?w=1&h=2"
REF = FileRef("image", URL, "0011223344556677")


def fingerprint_of(task: Task) -> bytes:
    return ADMISSION.admit(task).fingerprint


def test_a_file_is_known_by_what_the_frontier_calls_its_task() -> None:
    task = file_task(URL, None)
    assert known_as(task, b"") == fingerprint_of(task)
    assert known_as(decode(encode(task)), b"") == fingerprint_of(task)


def test_spellings_of_an_address_are_one_file_and_no_page() -> None:
    task = file_task(URL, None)
    other = file_task("https://CDN.example:443/./a.png?h=2&w=1", None)
    assert fingerprint_of(task) == fingerprint_of(other)
    assert fingerprint_of(task) != ADMISSION.fingerprint(URL)
    assert fingerprint_of(task) != fingerprint_of(file_task(URL, "shop"))
    # A parameter by which pages are tracked may be what a file hangs on.
    assert fingerprint_of(task) != fingerprint_of(file_task(URL + "&gclid=2", None))


def test_what_follows_from_a_file_is_known_as_that_file() -> None:
    task, known = file_task(URL, None), fingerprint_of(file_task(URL, None))
    for after in (with_room(task, known), redirected_file(task, known)):
        assert known_as(after, b"") == known
        assert fingerprint_of(after) != known
        assert fingerprint_of(after) == fingerprint_of(decode(encode(after)))
    assert is_large(with_room(task, known))
    assert not is_large(task)
    assert not is_large(redirected_file(with_room(task, known), known)), "it may be a small one"


def test_two_files_that_lead_to_one_address_each_hear_of_it() -> None:
    one, two = file_task(URL, None), file_task(URL + "&x", None)
    target = Task(url="https://cdn.example/sorry.png")
    ends = [redirected_file(target, known_as(task, b"")) for task in (one, two)]
    assert fingerprint_of(ends[0]) != fingerprint_of(ends[1])


@pytest.mark.parametrize("note", [None, {}, "x", {"id": 5}, {"id": "zz"}, {"id": "00"}])
def test_a_note_that_somebody_else_wrote_may_be_anything(note: object) -> None:
    task = Task(url=URL, job_type=FILE, meta={} if note is None else {FILE: note})
    assert known_as(task, b"f" * 8) == b"f" * 8
    assert not note_of(task).is_large


@pytest.mark.parametrize("url", ["data:image/png;base64,AA", "mailto:a@b.example", "", "/a.png"])
def test_what_is_no_web_address_is_no_file(url: str) -> None:
    with pytest.raises(BadUrl):
        file_task(url, None)


def test_a_picture_in_an_address_is_not_kept() -> None:
    file = no_file("data:image/png;base64," + "A" * 10_000 + "\ud800", "no web address", 1.0)
    assert len(file.url) == 200
    assert no_file("\ud800", "x", 1.0).url == "?"


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_references_come_back_from_an_items_data(fields: dict[str, object]) -> None:
    data = json.dumps(fields).encode()
    with_them = with_refs(data, [REF])
    assert refs_in(with_them) == [REF]
    assert json.loads(with_them) == fields | {
        "_files": [{"field": "image", "url": URL, "id": REF.id}]
    }


@pytest.mark.parametrize(
    "data", [b"{}", b'{"_files":5}', b'{"x":"\\"_files\\""}', b'{"_files":[{}]}']
)
def test_an_item_without_references(data: bytes) -> None:
    assert refs_in(data) == []
