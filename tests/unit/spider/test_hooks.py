"""Hooks of spiders and plugins: which there are, and what becomes of requests and items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError
from shoal.fleet import target
from shoal.spider.harvest import UnknownHandler, harvest
from shoal.spider.hooks import Hooks, is_hook
from shoal.spider.outgoing import Outgoing, outgoing
from shoal.spider.own_settings import settings_of
from shoal.spider.page import Page
from shoal.spider.reading import Reading, read
from shoal.spider.spider import Spider

URL = "https://shop.example/lamp?id=1"


def page_for(handler: str = "parse") -> Page:
    task = Task(url=URL, job_type=handler)
    return Page(url=URL, status=200, headers={}, body=b"", task=task, fingerprint=bytes(8))


class Plain(Spider):
    def parse(self, page: Page) -> Iterator[Any]:
        yield {"n": 1}
        yield {"n": 2}


class Cleaning(Plain):
    def item(self, item: Any, page: Page) -> Any:
        return {**item, "url": page.url} if item["n"] == 1 else None


async def items_of(spider: Spider) -> list[bytes]:
    return [item.data for item in await read_ok(spider)]


async def read_ok(spider: Spider) -> list[Any]:
    reading: Reading = await read(spider, page_for(), 1.0)
    assert reading.error is None
    return reading.items


# Which there are


def test_a_spider_without_hooks_has_none() -> None:
    assert Plain()._shoal_hooks == Hooks()


def test_what_takes_a_page_is_a_handler_as_ever() -> None:
    class Handlers(Spider):
        def item(self, page: Page) -> list[Any]:
            return [{"handler": "item"}]

        def request(self, response: Page) -> list[Any]:
            return [{"handler": "request"}]

    assert not is_hook(Handlers, "item")
    assert not is_hook(Handlers, "request")
    assert Handlers()._shoal_hooks == Hooks()


async def test_no_task_can_name_a_hook() -> None:
    class Hooked(Cleaning):
        def request(self, req: Outgoing) -> None:
            raise AssertionError("called as a handler")

    for name in ("item", "request"):
        with pytest.raises(UnknownHandler):
            await harvest(Hooked(), page_for(name))


def test_static_and_class_methods_are_hooks_too() -> None:
    class Static(Plain):
        @staticmethod
        def item(thing: Any, page: Page) -> Any:
            return thing

        @classmethod
        def request(cls, request: Outgoing) -> None:
            request.headers["X"] = cls.__name__

    assert (len(Static()._shoal_hooks.item), len(Static()._shoal_hooks.request)) == (1, 1)


def test_an_item_hook_that_forgets_to_return_is_said_at_once() -> None:
    class Forgetful(Plain):
        def item(self, item: Any, page: Page) -> Any:
            item["url"] = page.url

    with pytest.raises(ConfigError, match=r"Forgetful\.item returns nothing"):
        target.create(Forgetful)


# Items


async def test_an_item_is_changed_or_dropped() -> None:
    assert await items_of(Cleaning()) == [b'{"n":1,"url":"%s"}' % URL.encode()]


async def test_one_item_may_become_several() -> None:
    class Several(Plain):
        async def item(self, item: Any, page: Page) -> AsyncIterator[Any]:
            for half in (1, 2):
                yield {"n": item["n"], "half": half}

    assert len(await items_of(Several())) == 4


async def test_plugins_come_first_in_their_order_and_the_spider_last() -> None:
    class First:
        def item(self, item: Any, page: Page) -> Any:
            return {"by": [*item.get("by", []), type(self).__name__]}

    class Second(First):
        pass

    class Shop(Plain):
        plugins = (First, Second())

        def item(self, item: Any, page: Page) -> Any:
            return [{"by": [*item["by"], "spider"]}]

    assert (await items_of(Shop()))[0] == b'{"by":["First","Second","spider"]}'


@pytest.mark.parametrize("given", ["text", 3, ["text"], Task(url=URL), [Task(url=URL)]])
async def test_what_is_no_item_is_a_failure_of_the_page(given: Any) -> None:
    class Wrong(Plain):
        def item(self, item: Any, page: Page) -> Any:
            return given

    reading = await read(Wrong(), page_for(), 1.0)

    assert (type(reading.error), reading.items) == (TypeError, [])


# Requests


async def sent(*hooks: Any, **fields: Any) -> Task:
    return await outgoing(Task(url=URL, **fields), hooks)


async def test_a_request_is_changed_and_its_task_is_not() -> None:
    task = Task(url=URL, headers={"A": "1"}, method="POST", body="x")

    async def sign(request: Outgoing) -> None:
        request.url += "&sig=secret"
        request.headers["User-Agent"] = "me"
        request.body = f"{request.body}y"

    changed = await outgoing(task, [sign])

    assert (changed.url, changed.body) == (f"{URL}&sig=secret", "xy")
    assert changed.headers == {"A": "1", "User-Agent": "me"}
    assert (task.url, task.headers, task.body) == (URL, {"A": "1"}, "x")


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/",
        "https://shop.example:8080/",
        "http://shop.example/",
        "https://shop.example@other.example/",
        "//other.example/",
        "",
        "file:///etc/passwd",
        "https://other.example\\@shop.example/",
    ],
)
async def test_a_request_does_not_leave_its_host(url: str) -> None:
    def elsewhere(request: Outgoing) -> None:
        request.url = url

    with pytest.raises((ValueError, BadUrl)):
        await sent(elsewhere)


@pytest.mark.parametrize(
    "change", [{"body": b"x"}, {"body": "x" * 2_000_000}, {"headers": {"A": 1}}]
)
async def test_what_cannot_be_sent_is_said(change: dict[str, Any]) -> None:
    def wrong(request: Outgoing) -> None:
        for name, value in change.items():
            setattr(request, name, value)

    with pytest.raises((ValueError, TypeError), match="request hook"):
        await sent(wrong)


# Plugins by name


PLUGIN = """
class Mark:
    def item(self, item, page):
        return {**item, "marked": True}

class Nothing:
    pass

class Broken:
    def __init__(self):
        raise RuntimeError("no such server")
    def item(self, item, page):
        return item
"""


async def test_plugins_of_the_settings_are_named(tmp_path: Path) -> None:
    (tmp_path / "own_plugins.py").write_text(PLUGIN)
    spider = target.create(Plain, [f"{tmp_path}/own_plugins.py:Mark"])

    assert await items_of(spider) == [b'{"n":1,"marked":true}', b'{"n":2,"marked":true}']


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("own_plugins.py", "write package.module:Class"),
        ("own_plugins.py:Missing", "has no 'Missing'"),
        ("own_plugins.py:Nothing", "has none of these methods: request, item"),
        ("own_plugins.py:Broken", "plugin Broken: RuntimeError: no such server"),
        ("no.such.module:Mark", "no module named 'no"),
        ("gone.py:Mark", "no such file"),
    ],
)
def test_a_plugin_that_is_none_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_plugins.py").write_text(PLUGIN)

    with pytest.raises(ConfigError, match=said):
        target.create(Plain, [named])


def test_the_plugins_of_a_spider_are_no_setting() -> None:
    class Shop(Plain):
        plugins = (Cleaning,)

    assert "plugins" not in settings_of(Shop)
