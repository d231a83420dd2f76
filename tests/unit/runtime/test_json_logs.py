"""JSON log lines: flat, by the names of OpenTelemetry, without credentials."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

import pytest

from shoal.core.addresses import without_credentials
from shoal.runtime.logs import JsonFormatter, PlainFormatter, about

NAMES = [
    *("timestamp", "level", "message", "service.name", "host.name", "process.pid", "logger"),
    *("event.name", "shoal.crawl", "shoal.worker", "url.full", "server.address"),
    *("http.response.status_code", "error.type", "exception.stacktrace", "duration_s"),
]


def record(message: str, **more: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "shoal", **more})


def shown(one: logging.LogRecord, **process: str) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(JsonFormatter(**process).format(one))
    return line


def test_all_fields_have_their_names_and_are_flat() -> None:
    fields = about(
        event="task.dead",
        crawl="shop",
        worker="w:1",
        url="https://shop.example/",
        host="shop.example",
        status=500,
        error="status_5xx",
        stacktrace="x",
        duration_s=0.5,
    )
    line = shown(record("hello", **fields))
    assert list(line) == NAMES
    assert not any(isinstance(value, dict | list) for value in line.values())
    assert line["http.response.status_code"] == 500


def test_what_is_not_known_is_left_out() -> None:
    assert list(shown(record("hello", **about(crawl="", status=None)))) == NAMES[:7]


def test_a_line_knows_the_crawl_of_its_process_and_its_own_wins() -> None:
    assert shown(record("x"), crawl="shop", worker="w:1")["shoal.crawl"] == "shop"
    assert shown(record("x", **about(crawl="other")), crawl="shop")["shoal.crawl"] == "other"


def test_an_error_has_its_type_and_its_stack() -> None:
    try:
        raise ValueError("no https://me:hunter2@shop.example/")
    except ValueError:
        line = shown(record("failed", exc_info=sys.exc_info()))
    assert line["error.type"] == "ValueError"
    assert "Traceback" in line["exception.stacktrace"]
    assert "https://***@shop.example/" in line["exception.stacktrace"]
    assert "hunter2" not in str(line["exception.stacktrace"]).replace('"no https://me:hunter2@', "")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("nothing?", "nothing?"),
        ("at redis://:hunter2@queue-host:6379/0", "at redis://***@queue-host:6379/0"),
        ("https://a:b@c.example/@x", "https://***@c.example/@x"),
        ("https://a:b@evil@c.example/", "https://***@c.example/"),
        ("https://x.example/?a=1&api_key=2&b=3", "https://x.example/?a=1&api_key=***&b=3"),
        ("https://x.example/?token=2#t", "https://x.example/?token=***#t"),
        ("/p?X-Amz-Signature=abc, then", "/p?X-Amz-Signature=*** then"),
        ("https://x.example/?monkey=1&keyword=2", "https://x.example/?monkey=1&keyword=2"),
        ("feed redis://:p@h?key=urls&type=list", "feed redis://***@h?key=urls&type=list"),
        ("feed https://h?key=urls", "feed https://h?key=***"),
        ("mail@x.example https://x.example/", "mail@x.example https://x.example/"),
    ],
)
def test_credentials_are_cut(text: str, cut: str) -> None:
    assert without_credentials(text) == cut
    assert PlainFormatter().format(record(text, levelname="INFO")).endswith(cut)
    assert shown(record("x", **about(url=text)))["url.full"] == cut


@pytest.mark.parametrize(
    "text",
    [
        "://" + "a" * 500_000,
        "?" + "key_" * 200_000,
        "://@" * 100_000,
        "?&" * 200_000 + "key",
        "&key=a" * 90_000,
    ],
    ids=["login", "name", "logins", "options", "keys"],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    without_credentials(text)
    assert time.process_time() - began < 5
