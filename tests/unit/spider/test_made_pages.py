"""Pages that were not fetched, for users' tests of their handlers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.spider.page import Page
from shoal.spider.spider import Spider

URL = "https://shop.example/list?page=1"


class Shop(Spider):
    def parse(self, page: Page) -> Iterator[Any]:
        yield {"title": page.css("h1::text").get(), "shelf": page.meta.get("shelf")}
        yield from page.follow_all("a", handler=self.parse)


def test_a_page_of_html() -> None:
    page = Page.from_html(URL, "<h1>Größe</h1><a href='/x'>x</a>", meta={"shelf": 3})
    item, task = Shop().parse(page)
    assert item == {"title": "Größe", "shelf": 3}
    assert (task.url, task.depth, task.parent) == (
        "https://shop.example/x",
        1,
        page.fingerprint.hex(),
    )
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_bytes_are_read_as_their_page_says() -> None:
    page = Page.from_html(URL, "<meta charset=latin-1><h1>Größe</h1>".encode("latin-1"))
    assert page.css("h1::text").get() == "Größe"


def test_a_page_of_json() -> None:
    page = Page.from_json(URL, {"items": [1, 2]}, status=404, headers={"ETag": "x"})
    assert (page.json(), page.status, page.headers["etag"]) == ({"items": [1, 2]}, 404, "x")


def test_headers_and_the_task_may_be_given() -> None:
    task = Task(url=URL, job_type="other", meta={"a": 1})
    headers = {"content-type": "text/html; charset=latin-1"}
    page = Page.from_html(URL, "<h1>é</h1>".encode("latin-1"), headers=headers, task=task)
    assert page.css("h1::text").get() == "é"
    assert (page.task.job_type, page.meta) == ("other", {"a": 1})


def test_an_address_that_is_none() -> None:
    with pytest.raises(BadUrl):
        Page.from_html("shop.example", "")
