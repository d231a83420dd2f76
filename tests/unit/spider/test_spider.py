"""Spiders: settings, seeds, and what handlers of every shape yield."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import repeat
from types import SimpleNamespace
from typing import Any, get_type_hints

import attrs
import msgspec
import pydantic
import pytest

from shoal.config import SETTINGS, Rules, Settings, build
from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.spider.follow_rules import Follow
from shoal.spider.harvest import UnknownHandler, harvest
from shoal.spider.items import Item
from shoal.spider.link_spider import LinkSpider, WebPage, spider_for
from shoal.spider.own_settings import settings_of
from shoal.spider.page import Page
from shoal.spider.session import Session
from shoal.spider.spider import Spider, login_of
from shoal.spider.starting import seeds


def page_for(handler: str = "parse", body: bytes = b"<a href=/1></a><a href=/2></a>") -> Page:
    return Page(
        url="https://shop.example/",
        status=200,
        headers={"Content-Type": "text/html"},
        body=body,
        task=Task(url="https://shop.example/", job_type=handler),
        fingerprint=bytes(8),
    )


# Names and settings


def test_a_spider_is_named_after_its_class_unless_it_says_otherwise() -> None:
    class BookShop(Spider):
        pass

    class Other(BookShop):
        name = "books"

    class Third(Other):
        pass

    assert (BookShop.name, Other.name, Third.name) == ("bookshop", "books", "third")


def test_the_attributes_of_a_spider_have_the_types_of_the_settings() -> None:
    settings = get_type_hints(Rules) | get_type_hints(Settings)
    settings |= {name: Sequence[str] for name, setting in SETTINGS.items() if setting.is_list}
    declared = get_type_hints(Spider)

    named = (SETTINGS.keys() & declared.keys()) - {"name", "plugins"}
    assert {"rate", "allowed_hosts", "max_pages"} <= named
    for name in named:
        assert declared[name] == settings[name], name


def test_settings_are_class_attributes_of_the_spider_and_its_bases() -> None:
    class Base(Spider):
        rate = "2/s"
        max_depth = 3

    class Shop(Base):
        name = "shop"
        max_depth = 4
        allowed_hosts = ("shop.example",)
        robots = False
        unrelated = 5
        rules = (Follow(),)

        def results(self, page: Page) -> None:
            """A handler that happens to be called like a setting."""

    expected = {"rate": "2/s", "max_depth": 4, "allowed_hosts": ("shop.example",), "robots": False}
    assert settings_of(Shop) == expected
    assert settings_of(Spider) == {}
    assert build(settings_of(Shop)).rules.allowed_hosts == ("shop.example",)


# Seeds


async def seeds_of(start: Any) -> list[str]:
    spider = type("Shop", (Spider,), {"start": start})()
    return [task.url async for task in seeds(spider)]


async def test_seeds_are_the_start_urls() -> None:
    class Shop(Spider):
        start_urls = ("https://shop.example/1", "https://shop.example/2")

    assert [task async for task in seeds(Shop())] == [Task(url=url) for url in Shop.start_urls]
    assert [task async for task in seeds(Spider())] == []


async def test_start_may_have_any_shape() -> None:
    both: list[Task | str] = ["https://a.example/", Task(url="https://b.example/", priority=5)]
    expected = ["https://a.example/", "https://b.example/"]

    def generator(self: Spider) -> Iterator[Task | str]:
        yield from both

    async def async_generator(self: Spider) -> AsyncIterator[Task | str]:
        for seed in both:
            yield seed

    async def coroutine(self: Spider) -> Iterable[Task | str]:
        return both

    async def coroutine_of_generator(self: Spider) -> AsyncIterator[Task | str]:
        return async_generator(self)

    shapes = [generator, async_generator, coroutine, coroutine_of_generator, lambda self: both]
    for start in shapes:
        assert await seeds_of(start) == expected


@pytest.mark.parametrize("wrong", [5, None, b"https://shop.example/", ["https://shop.example/"]])
async def test_a_wrong_seed_is_named(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="start") as raised:
        await seeds_of(lambda self: [wrong])
    assert repr(wrong) in str(raised.value)


@pytest.mark.parametrize("wrong", [None, "https://shop.example/", 5])
async def test_start_must_give_something_to_go_through(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="start"):
        await seeds_of(lambda self: wrong)


UNSENDABLE = [
    ({"meta": {"a": object()}}, "unsupported"),
    ({"meta": {"a": "\ud800"}}, "surrogates"),
    ({"headers": {"a": 5}}, r"Expected `str`, got `int` - at `\$\.headers"),
    ({"priority": 0.5}, "priority must be a whole number from -"),
    ({"priority": 2**63}, "priority must be a whole number from -"),
]


UNSENDABLE_SEEDS = [
    *UNSENDABLE,
    ({"url": 5}, "Expected `str`"),
    ({"chain": ""}, r"Expected `str` of length >= 1 - at `\$\.chain"),
]


@pytest.mark.parametrize(("options", "flaw"), UNSENDABLE_SEEDS)
async def test_a_seed_that_cannot_be_sent_is_named(options: dict[str, Any], flaw: str) -> None:
    with pytest.raises(ConfigError, match=flaw):
        await seeds_of(lambda self: [Task(**{"url": "https://shop.example/", **options})])


async def test_start_urls_must_be_a_list() -> None:
    class Shop(Spider):
        start_urls = "https://shop.example/"

    with pytest.raises(ConfigError, match=r"Shop\.start_urls must be a list"):
        _ = [task async for task in seeds(Shop())]


# Handlers


class Product(Item, key="sku"):
    sku: str


class Shop(Spider):
    """One handler of each shape; all of them yield the same."""

    def generator(self, page: Page) -> Iterator[Any]:
        yield Product("a")
        yield from page.follow_all("a")

    def nested(self, page: Page) -> Iterator[Any]:
        yield [None, (Product("a"),), iter([page.follow_all("a")])]

    def delegating(self, page: Page) -> Iterator[Any]:
        yield self.generator(page)

    async def async_generator(self, page: Page) -> AsyncIterator[Any]:
        yield Product("a")
        yield page.follow_all("a")

    async def async_delegating(self, page: Page) -> AsyncIterator[Any]:
        yield [self.async_generator(page)]

    def function(self, page: Page) -> list[Any]:
        return [Product("a"), *page.follow_all("a")]

    async def coroutine(self, page: Page) -> Iterable[Any]:
        return self.function(page)

    async def coroutine_of_generator(self, page: Page) -> AsyncIterator[Any]:
        return self.async_generator(page)

    @staticmethod
    def static(page: Page) -> list[Any]:
        return [Product("a"), page.follow_all("a")]

    @classmethod
    def of_class(cls, page: Page) -> list[Any]:
        return cls.static(page)

    def nothing(self, page: Page) -> None:
        return None

    async def async_nothing(self, page: Page) -> None:
        return None

    def single(self, page: Page) -> Task:
        return page.follow("/1")

    def broken(self, page: Page) -> Iterator[Any]:
        yield page.follow("/1")
        raise LookupError("no price")


@pytest.mark.parametrize(
    "handler",
    [
        "generator",
        "nested",
        "delegating",
        "async_generator",
        "async_delegating",
        "function",
        "coroutine",
        "coroutine_of_generator",
        "static",
        "of_class",
    ],
)
async def test_handlers_of_every_shape(handler: str) -> None:
    gathered = await harvest(Shop(), page_for(handler))
    assert gathered.items == [Product("a")]
    assert [task.url for task in gathered.tasks] == [
        "https://shop.example/1",
        "https://shop.example/2",
    ]


async def test_handlers_that_give_nothing_or_one_thing() -> None:
    for handler in ("nothing", "async_nothing"):
        gathered = await harvest(Shop(), page_for(handler))
        assert (gathered.tasks, gathered.items) == ([], [])
    assert len((await harvest(Shop(), page_for("single"))).tasks) == 1


async def test_what_a_handler_raises_is_passed_on() -> None:
    with pytest.raises(LookupError, match="no price"):
        await harvest(Shop(), page_for("broken"))
    with pytest.raises(NotImplementedError, match="Shop has no method 'parse'"):
        await harvest(Shop(), page_for("parse"))


def yielding(*things: Any) -> Spider:
    def parse(self: Spider, page: Page) -> Iterator[Any]:
        yield from things

    spider: Spider = type("Yielding", (Spider,), {"parse": parse})()
    return spider


@dataclasses.dataclass
class Plain:
    sku: str


class Record(msgspec.Struct):
    sku: str


@attrs.define
class Attrs:
    sku: str


class Model(pydantic.BaseModel):
    """Iterable, like all models: it must not be taken for a list of its fields."""

    sku: str


async def test_items_of_every_kind() -> None:
    items = [Product("a"), {"a": 1}, {}, Plain("a"), Record("a"), Attrs("a"), Model(sku="a")]
    assert (await harvest(yielding(*items), page_for())).items == items


async def _coroutine() -> None: ...


@pytest.mark.parametrize(
    ("thing", "hint"),
    [
        ("https://shop.example/x", "use page.follow"),
        (["https://shop.example/x"], "use page.follow"),
        (b"x", "neither an item nor a task"),
        (5, "neither an item nor a task"),
        (1.5, "neither an item nor a task"),
        (True, "neither an item nor a task"),
        (SimpleNamespace(), "neither an item nor a task"),
        (page_for().css("a"), "use page.follow_all"),
        (page_for(), "neither an item nor a task"),
    ],
)
async def test_what_is_no_item_and_no_task_is_a_type_error(thing: Any, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        await harvest(yielding(thing), page_for())


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_no_item_is_an_error_in_the_line_that_yields_it(*, is_async: bool) -> None:
    class Wrong(Spider):
        def links(self, page: Page) -> Iterator[Any]:
            yield page.follow("/1")
            yield [5]

        def plain(self, page: Page) -> Iterator[Any]:
            yield self.links(page)

        async def later(self, page: Page) -> AsyncIterator[Any]:
            yield {"a": 1}
            yield self.links(page)

    page = page_for("later" if is_async else "plain")
    with pytest.raises(TypeError, match="a handler yielded 5") as raised:
        await harvest(Wrong(), page)
    assert raised.traceback[-1].name == "links"
    assert str(raised.traceback[-1].statement).strip() == "yield [5]"


async def test_a_handler_that_thinks_nothing_of_it_fails_all_the_same() -> None:
    class Careless(Spider):
        def parse(self, page: Page) -> Iterator[Any]:
            try:
                yield 5
            except TypeError:
                yield 6

    with pytest.raises(TypeError, match="a handler yielded 5"):
        await harvest(Careless(), page_for())


@pytest.mark.parametrize("thing", [Task(url="https://shop.example/1"), {"a": 1}])
@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_handler_may_not_yield_without_end(
    thing: Any, monkeypatch: pytest.MonkeyPatch, *, is_nested: bool
) -> None:
    class Endless(Spider):
        def parse(self, page: Page) -> Iterator[Any]:
            return repeat([thing, thing] if is_nested else thing)

    monkeypatch.setattr("shoal.spider.harvest.MAX_YIELDED", 100)
    with pytest.raises(TypeError, match="more than"):
        await harvest(Endless(), page_for())


async def test_a_handler_may_not_yield_files_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class AllForEach(Spider):
        def parse(self, page: Page) -> Iterator[Any]:
            for number in range(10):
                yield page.files([f"/{name}.png" for name in range(20)], item={"number": number})

    monkeypatch.setattr("shoal.spider.harvest.MAX_YIELDED", 100)
    with pytest.raises(TypeError, match="more than"):
        await harvest(AllForEach(), page_for())


async def test_a_coroutine_that_was_not_awaited_is_named() -> None:
    with pytest.raises(TypeError, match="await it first"):
        await harvest(yielding(_coroutine()), page_for())


@pytest.mark.parametrize(("options", "flaw"), UNSENDABLE)
async def test_a_task_that_cannot_be_sent_is_the_handlers_error(
    options: dict[str, Any], flaw: str
) -> None:
    good = {"meta": {"a": [1]}, "headers": {"a": "b"}, "body": "c", "priority": -5}
    tasks = [page_for().follow("/1", **options), page_for().follow("/2", **good)]  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=flaw):
        await harvest(yielding(*tasks), page_for())
    assert (await harvest(yielding(tasks[1]), page_for())).tasks == [tasks[1]]


@pytest.mark.parametrize(
    ("made", "depth", "parent"),
    [
        (Task(url="https://shop.example/1"), 4, "0000000000000000"),
        (Task(url="https://shop.example/1", depth=9), 9, "0000000000000000"),
        (Task(url="https://shop.example/1", depth=1, parent="ff"), 4, "ff"),
    ],
)
async def test_a_task_made_by_hand_is_a_child_of_the_page(
    made: Task, depth: int, parent: str
) -> None:
    class Shop(Spider):
        def parse(self, page: Page) -> Iterator[Task]:
            yield made

    page = page_for()
    page.task.depth = 3
    (task,) = (await harvest(Shop(), page)).tasks
    assert (task.depth, task.parent) == (depth, parent)
    assert made.depth != 4, "the handler's own is left as it is"


@pytest.mark.parametrize("chain", ["", 5, "\ud800", "x" * 201])
async def test_a_chain_that_was_set_by_hand_is_looked_at(chain: Any) -> None:
    task = page_for().follow("/1")
    task.chain = chain
    with pytest.raises(TypeError, match="a task that cannot be sent"):
        await harvest(yielding(task), page_for())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"meta": {"lamp": object()}}, "meta may hold only JSON values"),
        ({"max_retries": "5"}, "max_retries must be a whole number from 0 to"),
    ],
)
async def test_what_no_task_can_carry_is_named(options: Any, said: str) -> None:
    task = page_for().follow("/1", **options)
    with pytest.raises(TypeError, match=f"a task that cannot be sent: {said}"):
        await harvest(yielding(task), page_for())


@pytest.mark.parametrize("session", ["", 5, "\ud800", "x" * 101])
async def test_a_session_that_was_set_by_hand_is_looked_at(session: Any) -> None:
    task = page_for().follow("/1")
    task.session = session
    with pytest.raises(TypeError, match="a task that cannot be sent"):
        await harvest(yielding(task), page_for())


class Guarded(Spider):
    secret = "x"
    helper = print
    Inner = Product

    def parse(self, page: Page) -> None: ...

    def start(self) -> list[str]:
        raise AssertionError("called by a task")

    def _private(self, page: Page) -> None:
        raise AssertionError("called by a task")


_HOSTILE = "start name start_urls secret helper Inner _private __init__ __class__ missing rate"


@pytest.mark.parametrize(
    "handler", [*_HOSTILE.split(), "", "parse.__call__", "\ud800", "x" * 10_000]
)
async def test_a_task_cannot_name_anything_but_a_handler(handler: str) -> None:
    with pytest.raises(UnknownHandler, match="Guarded has no handler") as raised:
        await harvest(Guarded(), page_for(handler))
    assert len(str(raised.value)) < 300


async def test_a_handler_may_come_from_a_base_or_a_mixin() -> None:
    class Mixin:
        def extra(self, page: Page) -> list[Product]:
            return [Product("a")]

    class Child(Shop, Mixin):
        pass

    for handler in ("extra", "function"):
        assert (await harvest(Child(), page_for(handler))).items == [Product("a")]


class Shopper(Spider):
    login_url = "https://shop.example/login"

    async def login(self, session: Session) -> None:
        raise AssertionError("called by a task")

    def logged_in(self, page: Page) -> bool:
        raise AssertionError("called by a task")

    def parse(self, page: Page) -> None: ...


class ClassLogin(Shopper):
    @classmethod
    async def login(cls, session: Session) -> None:
        raise AssertionError("called by a task")


@pytest.mark.parametrize("spider", [Shopper, ClassLogin])
@pytest.mark.parametrize("handler", ["login", "logged_in", "login_url", "session", "accounts"])
async def test_no_task_logs_in(spider: type[Spider], handler: str) -> None:
    with pytest.raises(UnknownHandler):
        await harvest(spider(), page_for(handler))


async def test_a_login_that_takes_a_page_is_a_handler() -> None:
    class Filler(Spider):
        def login(self, page: Page) -> list[Product]:
            return [Product("a")]

    assert (await harvest(Filler(), page_for("login"))).items == [Product("a")]
    assert login_of(Filler()) is None
    assert login_of(Shopper()) is not None


def test_the_proof_of_a_login_is_css() -> None:
    with pytest.raises(ConfigError, match=r"Wrong\.logged_in: "):

        class Wrong(Spider):
            logged_in = "a["


# Plain URLs

PLAIN = b"""<html><head><title> A
 title </title><script>var unseen = 1</script></head><body>
<h1>Four words are here</h1> <script>unseen()</script><style>p {}</style>
<a href="/1#a">12</a><a href="HTTPS://SHOP.example:443/2">34</a>
<a href="https://www.shop.example/3">56</a><a href="mailto:x@shop.example">78</a>
</body></html>"""


async def test_plain_pages_are_described_and_links_on_the_host_followed() -> None:
    gathered = await harvest(LinkSpider(), page_for(body=PLAIN))
    assert gathered.items == [
        WebPage(
            url="https://shop.example/",
            status=200,
            title="A title",
            text_size=len("Four words are here") + 8,
            links=3,
        )
    ]
    assert [task.url for task in gathered.tasks] == [
        "https://shop.example/1",
        "https://shop.example/2",
    ]


@pytest.mark.parametrize(
    "body", [b"", b"just text", b"<p>no title", b"\xff\xfe\0\0", b"<title></title>"]
)
async def test_a_page_without_a_title_has_none(body: bytes) -> None:
    gathered = await harvest(LinkSpider(), page_for(body=body))
    assert [item.title for item in gathered.items] == [None]


async def test_binary_is_no_text() -> None:
    page = page_for(body=b"\x89PNG\r\n\x1a\n\0\0\0\r<title>x</title>")
    page.headers = {"Content-Type": "image/png"}
    (item,) = (await harvest(LinkSpider(), page)).items
    assert (item.title, item.text_size, item.links) == (None, 0, 0)


@pytest.mark.parametrize("name", [3, None, property(lambda self: "shop")])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    odd = type("Odd", (Spider,), {"name": name})
    with pytest.raises(ConfigError, match=r"^Odd\.name must be text, not "):
        settings_of(odd)


def test_a_spider_for_urls() -> None:
    spider = spider_for(["http://Shop.example:8080/a", "https://b.example", "https://b.example/c"])
    assert spider.name == "shop.example-8080"
    assert list(spider.start_urls) == [
        "http://Shop.example:8080/a",
        "https://b.example",
        "https://b.example/c",
    ]
    assert settings_of(spider) == {"allowed_hosts": ("shop.example:8080", "b.example")}
    assert spider_for(["http://[::1]:80/"]).name == "1"


def test_a_spider_has_a_logger_of_its_name_and_may_have_another() -> None:
    class Shop(Spider):
        name = "book-shop"

    spider = Shop()
    assert spider.logger is logging.getLogger("book-shop")
    spider.logger = logging.getLogger("other")
    assert spider.logger.name == "other"
