"""Who writes Scrapy's words is told what they are here."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict

from shoal import Follow, Page, Task
from shoal.spider.scrapy_words import WORDS


@pytest.fixture
def follow_any(request: pytest.FixtureRequest) -> Any:
    """Calls as nobody writes them who checks types."""
    url = "https://shop.example/"
    page = Page(
        url=url,
        status=200,
        headers=CIMultiDict(),
        body=b"<a href=/x>x</a>",
        task=Task(url=url),
        fingerprint=bytes(8),
    )
    return getattr(page, request.param)


@pytest.mark.parametrize("follow_any", ["follow", "follow_all"], indirect=True)
@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_scrapys_is_translated(follow_any: Any, word: str) -> None:
    with pytest.raises(TypeError, match=f"^{word}= is Scrapy's word: write "):
        follow_any("a", **{word: "product"})


@pytest.mark.parametrize("follow_any", ["follow", "follow_all"], indirect=True)
def test_a_word_of_nobodys_is_named(follow_any: Any) -> None:
    with pytest.raises(TypeError, match=r"^follow(_all)?\(\) has no argument handlr=$"):
        follow_any("a", handlr="product")


def test_rules_know_what_scrapy_says() -> None:
    with pytest.raises(TypeError, match="callback= is Scrapy's word: write handler="):
        Follow("a", callback="product")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Follow\(\) has no argument handlr=$"):
        Follow("a", handlr="product")  # type: ignore[call-arg]
