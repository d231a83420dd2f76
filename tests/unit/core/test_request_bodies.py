"""Bodies of requests: the bytes that browsers send, and the same each time."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.bodies import (
    MAX_BODY_BYTES,
    File,
    Upload,
    multipart,
    on_wire,
    plain_text,
    sent,
    urlencoded,
)
from shoal.core.task import Task, bad_body, decode, encode, raw_body

URL = "https://shop.example/"
PNG = b"\x89PNG\r\n\x1a\n"

texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a b", "a+b"),
        ("a+b&c=d", "a%2Bb%26c%3Dd"),
        ("*-._~", "*-._%7E"),
        ("ü€", "%C3%BC%E2%82%AC"),
        ("a\nb\rc\r\nd", "a%0D%0Ab%0D%0Ac%0D%0Ad"),
        ("\0", "%00"),
        ("", ""),
    ],
)
def test_what_a_browser_makes_of_a_value(value: str, expected: str) -> None:
    assert urlencoded([("n", value)]) == f"n={expected}"


@given(st.lists(st.tuples(texts, texts)))
def test_what_was_urlencoded_can_be_read(fields: list[tuple[str, str]]) -> None:
    read = parse_qsl(urlencoded(fields), keep_blank_values=True)
    assert read == [field for field in fields if field != ("", "")] or ("", "") in fields


def test_what_a_charset_lacks_is_a_reference() -> None:
    assert urlencoded([("ü", "ü€и")], "cp1252") == "%FC=%FC%80%26%231080%3B"
    assert plain_text([("n", "и")], "cp1252").content == b"n=&#1080;\r\n"


def test_plain_text() -> None:
    body = plain_text([("a", "1\n2"), ("f", File("x.txt", b"..."))])
    assert body == (b"a=1\r\n2\r\nf=x.txt\r\n", "text/plain")


def test_parts() -> None:
    body = multipart([("a", "1\n2"), ('q"\n', File('x"\r.png', PNG, "image/png")), ("ü", "ü")])
    line = f"--{body.type.partition('boundary=')[2]}"
    assert body.content.split(b"\r\n") == [
        line.encode(),
        b'Content-Disposition: form-data; name="a"',
        b"",
        b"1",
        b"2",
        line.encode(),
        b'Content-Disposition: form-data; name="q%22%0D%0A"; filename="x%22%0D.png"',
        b"Content-Type: image/png",
        b"",
        *PNG.split(b"\r\n"),
        line.encode(),
        'Content-Disposition: form-data; name="ü"'.encode(),
        b"",
        "ü".encode(),
        f"{line}--".encode(),
        b"",
    ]


def test_the_same_files_are_the_same_bytes() -> None:
    fields = [("a", File("x.png", PNG))]
    assert multipart(fields) == multipart(fields) != multipart([("a", File("y.png", PNG))])


@given(st.binary())
def test_any_bytes_are_one_part(content: bytes) -> None:
    body = multipart([("f", File("x", content))])
    line = f"--{body.type.partition('boundary=')[2]}".encode()
    assert body.content.count(line) == 2
    head, _, rest = body.content.partition(b"\r\n\r\n")
    assert head.startswith(line + b"\r\n")
    assert rest == content + b"\r\n" + line + b"--\r\n"


@pytest.mark.parametrize(
    ("given", "method", "kind", "body"),
    [
        ({}, "GET", None, None),
        ({"body": "x"}, "GET", None, "x"),
        (
            {"form": {"a": 1, "b": ["x", "y"]}},
            "POST",
            "application/x-www-form-urlencoded",
            "a=1&b=x&b=y",
        ),
        (
            {"form": [("a", "1"), ("a", 2.5)]},
            "POST",
            "application/x-www-form-urlencoded",
            "a=1&a=2.5",
        ),
        ({"form": {}}, "POST", "application/x-www-form-urlencoded", ""),
        ({"json": {"a": [1, None]}}, "POST", "application/json", '{"a":[1,null]}'),
        ({"json": [], "method": "put"}, "PUT", "application/json", "[]"),
        ({"json": {}, "method": "GET"}, "GET", "application/json", "{}"),
        ({"json": 1, "headers": {"content-type": "x/y"}}, "POST", None, "1"),
    ],
)
def test_what_a_task_has_of_it(
    given: dict[str, Any], method: str, kind: str | None, body: str | None
) -> None:
    made = sent(given.pop("method", None), given.pop("headers", None), **given)
    assert (made.method, made.headers.get("Content-Type"), made.body) == (method, kind, body)
    assert not made.body_is_base64


def test_files_may_come_with_a_form() -> None:
    files: list[Upload] = [("a.png", PNG), ("b", b"text", "text/x")]
    made = sent(None, {"X": "y"}, form={"a": "1"}, files={"f": files})
    task = Task(url=URL, **made._asdict())
    assert (made.method, made.headers["X"], made.body_is_base64) == ("POST", "y", True)
    for part in (b'name="a"\r\n\r\n1', b'filename="a.png"\r\nContent-Type: image/png', b"text/x"):
        assert part in raw_body(task)
    assert decode(encode(task)) == task


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"body": "x", "json": 1}, "a request has one body, not body and json"),
        ({"json": 1, "files": {}}, "a request has one body, not json and form"),
        ({"form": {"a": "1"}, "method": "get"}, "a form has no body with GET"),
        ({"form": {"a": None}}, "a field is text or a number, not NoneType: 'a'"),
        ({"form": {"a": True}}, "a field is text or a number, not bool: 'a'"),
        ({"form": "a=1"}, "fields are a dict, or pairs of name and value, not 'a'"),
        ({"form": {1.5: "a", (): "b"}}, "a field is text or a number, not tuple"),
        ({"files": {"f": b"x"}}, "a file is a name and its bytes"),
        ({"files": {"f": ("n", "text")}}, "a file is a name and its bytes"),
        ({"files": {"f": ("n", b"", "a\r\nb")}}, "a file is a name and its bytes"),
        ({"files": {}, "headers": {"content-type": "a"}}, "the Content-Type of files follows"),
        ({"json": object()}, "json= cannot be written as JSON"),
        ({"body": "\ud800"}, "this body cannot be sent"),
        ({"body": b"x" * (MAX_BODY_BYTES + 1)}, "a body of 1,048,577 bytes: a task has at most"),
    ],
)
def test_what_cannot_be_sent(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        sent(given.pop("method", None), given.pop("headers", None), **given)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200))
def test_bytes_come_back_from_the_wire(content: bytes) -> None:
    body, is_base64 = on_wire(content)
    task = Task(url=URL, body=body, body_is_base64=is_base64)
    assert raw_body(decode(encode(task))) == content


def test_a_task_to_post() -> None:
    task = Task.post(URL, form={"q": "a b"}, job_type="found", priority=3)
    assert (task.method, task.body, task.job_type, task.priority) == ("POST", "q=a+b", "found", 3)
    assert Task.post(URL, json={}, method="PUT").method == "PUT"
    assert Task.post(URL, body=PNG).body == b64encode(PNG).decode()


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (Task(url=URL, body="ü"), None),
        (Task(url=URL, body="YQ==", body_is_base64=True), None),
        (Task(url=URL, body="YQ", body_is_base64=True), "the body is not base64"),
        (Task(url=URL, body="ü", body_is_base64=True), "the body is not base64"),
        (Task(url=URL, body=b"x"), "the body must be text, not bytes"),  # type: ignore[arg-type]
        (Task(url=URL, body="x" * (MAX_BODY_BYTES + 1)), "a body of 1,048,577 bytes"),
        (Task(url=URL, body="\ud800"), "'utf-8' codec can't encode"),
    ],
)
def test_bodies_that_no_task_may_have(task: Task, says: str | None) -> None:
    flaw = bad_body(task)
    assert flaw is None if says is None else says in (flaw or "")
