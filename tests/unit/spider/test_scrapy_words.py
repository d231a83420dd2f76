"""Who writes Scrapy's words is told what they are here."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy
from multidict import CIMultiDict

from shoal import Follow, Page, Spider, Task
from shoal.spider.harvest import harvest
from shoal.spider.scrapy_words import ATTRIBUTES, OF_FORMS, WORDS


@pytest.fixture
def follow_any(request: pytest.FixtureRequest) -> Any:
    """Calls as nobody writes them who checks types."""
    url = "https://shop.example/"
    page = Page(
        url=url,
        status=200,
        headers=CIMultiDict(),
        body=b"<a href=/x>x</a><form></form>",
        task=Task(url=url),
        fingerprint=bytes(8),
    )
    return getattr(page, request.param)


EACH = pytest.mark.parametrize("follow_any", ["follow", "follow_all", "submit"], indirect=True)


@EACH
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("first", [["form"], []], ids=["with a target", "in its place"])
def test_a_word_of_scrapys_is_translated(follow_any: Any, word: str, first: list[str]) -> None:
    with pytest.raises(TypeError, match=f"^{word}= is Scrapy's word: write "):
        follow_any(*first, **{word: "product"})


@pytest.mark.parametrize("follow_any", ["submit"], indirect=True)
@pytest.mark.parametrize("word", OF_FORMS)
def test_so_is_a_word_of_its_forms(follow_any: Any, word: str) -> None:
    with pytest.raises(TypeError, match=f"^{word}= is Scrapy's word: write (?!form=)"):
        follow_any("form", **{word: "product"})


@EACH
def test_a_word_of_nobodys_is_named(follow_any: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^(follow|follow_all|submit)\(\) has no argument handlr=$"
    ):
        follow_any("form", handlr="product")
    with pytest.raises(TypeError, match=r"^(follow|follow_all|submit)\(\) needs a first argument$"):
        follow_any()


@pytest.mark.parametrize("name", [*ATTRIBUTES, "nope"])
def test_an_attribute_of_scrapys_is_translated(name: str) -> None:
    page = Page.from_html("https://shop.example/", "<p>")
    ours = ATTRIBUTES.get(name)
    for thing in (page, page.css("p")):
        with pytest.raises(AttributeError, match=f"object has no attribute '{name}'") as raised:
            getattr(thing, name)
        assert str(raised.value).endswith(f"'{name}'") == (ours is None)
        assert ours is None or str(raised.value).endswith(f"which is Scrapy's: write {ours}")


@pytest.mark.parametrize(
    ("query", "ours"), [("//a", "page.xpath()"), ("/lamp", "page.follow()"), ("li..a", "")]
)
def test_what_is_no_css_is_named(query: str, ours: str) -> None:
    with pytest.raises(ValueError, match=r"^not a CSS selector: ") as raised:
        Page.from_html("https://shop.example/", "").css(query)
    assert ours in str(raised.value)
    assert str(raised.value).endswith("'") == (not ours)


async def test_what_scrapys_handlers_yield_is_translated() -> None:
    item = type("Lamp", (scrapy.Item,), {"title": scrapy.Field()})(title="Oak")

    class Shop(Spider):
        def parse(self, page: Page) -> Any:
            yield scrapy.Request(page.url)

        def item_of_scrapy(self, page: Page) -> Any:
            yield item

    for handler, ours in (("parse", r"page.follow\(url\)"), ("item_of_scrapy", r"dict\(it\)")):
        task = Task(url="https://shop.example/", job_type=handler)
        page = Page.from_html(task.url, "", task=task)
        with pytest.raises(TypeError, match=f"^a handler yielded .*: use {ours}$"):
            await harvest(Shop(), page)


def test_rules_know_what_scrapy_says() -> None:
    with pytest.raises(TypeError, match="callback= is Scrapy's word: write handler="):
        Follow("a", callback="product")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Follow\(\) has no argument handlr=$"):
        Follow("a", handlr="product")  # type: ignore[call-arg]
